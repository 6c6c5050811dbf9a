package fetch

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// session is a fetch session with one broker (KIP-227): the broker remembers what
// is asked for, a request names what has changed, and an answer what there is to
// say. A thousand idle partitions cost a few bytes.
type session struct {
	id, epoch int32 // 0, 0: none yet
	byID      bool  // requests name topics by their ids, not their names
	asked     map[spot]ask
}

// spot is how requests and answers name a partition: by the topic's id from
// version 13 on, by its name before.
type spot struct {
	id     [16]byte
	name   string
	number int32
}

// ask is what the broker was last told of a partition.
type ask struct {
	want
	leaderEpoch int32
}

const (
	// sessionVersion is the first version with sessions.
	sessionVersion = 7
	// idVersion is the first version that names topics by their ids.
	idVersion = 13
	// noSession asks the broker not to make one, or to end it.
	noSession = -1
)

// add makes r ask for the wants, of which leaderEpoch tells the source's leader's
// epoch as far as it is known, and sets its version.
func (s *session) add(r *kmsg.FetchRequest, version int16, wants []want, leaderEpoch func(*Partition) int32) {
	byID := version >= idVersion
	for i := range wants {
		if wants[i].id == [16]byte{} {
			byID, version = false, min(version, idVersion-1)
			break
		}
	}
	if s.asked == nil || s.byID != byID || version < sessionVersion {
		*s = session{byID: byID, asked: make(map[spot]ask, len(wants))}
	}
	r.SetVersion(version)
	if version >= sessionVersion {
		r.SessionID, r.SessionEpoch = s.id, s.epoch
	} else {
		r.SessionEpoch = noSession
	}
	if s.epoch == 0 {
		clear(s.asked) // the broker has to be told all of it
	}
	before, again := len(s.asked), 0
	topics := make(map[spot]int)
	for _, w := range wants {
		k, a := s.spot(w), ask{w, leaderEpoch(w.p)}
		told, ok := s.asked[k]
		if ok {
			again++
		}
		if ok && told == a {
			continue
		}
		s.asked[k] = a
		t := spot{id: k.id, name: k.name}
		i, ok := topics[t]
		if !ok {
			i = len(r.Topics)
			topics[t] = i
			rt := kmsg.NewFetchRequestTopic()
			rt.Topic, rt.TopicID = w.p.topic, w.id
			r.Topics = append(r.Topics, rt)
		}
		q := kmsg.NewFetchRequestTopicPartition()
		q.Partition, q.FetchOffset, q.PartitionMaxBytes = w.p.number, w.offset, w.most
		q.LastFetchedEpoch, q.CurrentLeaderEpoch = w.epoch, a.leaderEpoch
		r.Topics[i].Partitions = append(r.Topics[i].Partitions, q)
	}
	if again < before {
		s.forget(r, wants)
	}
}

// forget tells what is not wanted any more, or not for the moment.
func (s *session) forget(r *kmsg.FetchRequest, wants []want) {
	now := make(map[spot]bool, len(wants))
	for _, w := range wants {
		now[s.spot(w)] = true
	}
	topics := make(map[spot]int)
	for k, a := range s.asked {
		if now[k] {
			continue
		}
		delete(s.asked, k)
		t := spot{id: k.id, name: k.name}
		i, ok := topics[t]
		if !ok {
			i = len(r.ForgottenTopics)
			topics[t] = i
			ft := kmsg.NewFetchRequestForgottenTopic()
			ft.Topic, ft.TopicID = a.p.topic, a.id
			r.ForgottenTopics = append(r.ForgottenTopics, ft)
		}
		r.ForgottenTopics[i].Partitions = append(r.ForgottenTopics[i].Partitions, k.number)
	}
}

func (s *session) spot(w want) spot {
	if s.byID {
		return spot{id: w.id, number: w.p.number}
	}
	return spot{name: w.p.topic, number: w.p.number}
}

// answered keeps what the answer says of the session. again is true where the
// broker has forgotten it: nothing is lost, and the next request begins another.
func (s *session) answered(r *kmsg.FetchResponse) (again bool, err error) {
	switch err := kerr.ErrorForCode(r.ErrorCode); err {
	case nil:
	case kerr.FetchSessionIDNotFound, kerr.InvalidFetchSessionEpoch, kerr.FetchSessionTopicIDError, kerr.InconsistentTopicID:
		*s = session{}
		return true, nil
	default:
		*s = session{}
		return false, err
	}
	if r.SessionID == 0 { // the broker has no room for one
		s.id, s.epoch = 0, 0
		return false, nil
	}
	s.id = r.SessionID
	if s.epoch++; s.epoch <= 0 {
		s.epoch = 1
	}
	return false, nil
}

// find is what an answer's partition was asked for as.
func (s *session) find(t *kmsg.FetchResponseTopic, number int32) (want, bool) {
	k := spot{name: t.Topic, number: number}
	if s.byID {
		k = spot{id: t.TopicID, number: number}
	}
	a, ok := s.asked[k]
	return a.want, ok
}
