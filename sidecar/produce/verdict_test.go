package produce

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Codes that a broker gives in a produce response, by what to do about them. The
// list is that of ProduceResponse.json and of what ReplicaManager and KafkaApis of
// Apache Kafka put there.
func TestVerdicts(t *testing.T) {
	for want, errs := range map[verdict][]error{
		again: {
			io.EOF, errUnanswered,
			kerr.UnknownServerError, kerr.CorruptMessage, kerr.RequestTimedOut, kerr.NetworkException, kerr.NotEnoughReplicas,
			kerr.NotEnoughReplicasAfterAppend, kerr.ThrottlingQuotaExceeded, kerr.CoordinatorLoadInProgress, kerr.ConcurrentTransactions,
		},
		moved: {
			kerr.NotLeaderForPartition, kerr.LeaderNotAvailable, kerr.FencedLeaderEpoch, kerr.UnknownTopicOrPartition,
			kerr.UnknownTopicID, kerr.InconsistentTopicID, kerr.KafkaStorageError, kerr.ReplicaNotAvailable,
		},
		tooLarge:   {kerr.MessageTooLarge, kerr.RecordListTooLarge},
		badRecords: {kerr.InvalidRecord, kerr.InvalidTimestamp},
		refused: {
			kerr.UnsupportedForMessageFormat, kerr.UnsupportedCompressionType, kerr.PolicyViolation, kerr.InvalidTopicException,
			kerr.InvalidRequiredAcks, kerr.InvalidRequest, kerr.UnsupportedVersion, kerr.TopicAuthorizationFailed,
			kerr.ClusterAuthorizationFailed, kerr.TransactionalIDAuthorizationFailed,
		},
		lost: {
			kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID, kerr.InvalidProducerEpoch, kerr.InvalidProducerIDMapping, kerr.ProducerFenced,
		},
	} {
		for _, err := range errs {
			if got := verdictOf(fmt.Errorf("produce: %w", err)); got != want {
				t.Errorf("%v: verdict %d, want %d", err, got, want)
			}
		}
	}
}

// What is given up with a new sequence must not be stored: a broker that says so
// after it has appended is not to be believed.
func TestWhatMayBeStored(t *testing.T) {
	for _, err := range []error{
		io.EOF, kerr.RequestTimedOut, kerr.NotEnoughReplicasAfterAppend, kerr.NotLeaderForPartition, kerr.KafkaStorageError, kerr.UnknownServerError,
	} {
		if !maybeStored(fmt.Errorf("produce: %w", err)) {
			t.Errorf("%v is taken for not stored", err)
		}
	}
	for _, err := range []error{kerr.NotEnoughReplicas, kerr.OutOfOrderSequenceNumber, kerr.CorruptMessage} {
		if maybeStored(err) {
			t.Errorf("%v is taken for perhaps stored", err)
		}
	}
}

// A failure says which offset it is about, and why as the broker puts it.
func TestWordsOfAFailure(t *testing.T) {
	s := &sent{Entry: Entry{First: 40, Last: 49}, count: 10}
	s.Runs = splitAt(40, 3, 47, 7)
	for want, a := range map[string]answer{
		"source offset 40: EOF": {err: io.EOF},
		"source offset 40: " + kerr.PolicyViolation.Error() + ": not here":     {err: kerr.PolicyViolation, message: "not here"},
		"source offset 48: " + kerr.InvalidRecord.Error() + ": no key, no way": {err: kerr.InvalidRecord, bad: []recordError{{index: 4, message: "no key, no way"}, {index: 9}}},
	} {
		if got := describe(s, a); got.Error() != want || !errors.Is(got, a.err) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
