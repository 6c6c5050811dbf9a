package positions

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// appendKey appends the key of a position as Connect's JsonConverter writes it:
//
//	["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"t"}]
//
// Compaction compares bytes, so this has to be what MirrorMaker writes, to the
// byte: no spaces, this order of fields, and Jackson's way to escape.
func appendKey(b []byte, connector, cluster string, k Key) []byte {
	b = append(b, '[')
	b = appendString(b, connector)
	b = append(b, `,{"cluster":`...)
	b = appendString(b, cluster)
	b = append(b, `,"partition":`...)
	b = strconv.AppendInt(b, int64(k.Partition), 10)
	b = append(b, `,"topic":`...)
	b = appendString(b, k.Topic)
	return append(b, "}]"...)
}

// appendString appends a JSON string as Jackson writes it to bytes: short
// escapes where JSON has them, \u00XX in upper case for the other control
// characters, a pair of escaped surrogates for what is beyond the basic plane,
// and everything else (also <, &, / and U+2028) as it is.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	unit := func(b []byte, u rune) []byte {
		return append(b, '\\', 'u', hex[u>>12&15], hex[u>>8&15], hex[u>>4&15], hex[u&15])
	}
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\b':
			b = append(b, `\b`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\f':
			b = append(b, `\f`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r < 0x20:
			b = unit(b, r)
		case r > 0xffff:
			b = unit(b, 0xd800+(r-0x10000)>>10)
			b = unit(b, 0xdc00+(r-0x10000)&0x3ff)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// What parseKey says of keys that are not a position of this flow.
var (
	errForeign = errors.New("another connector's")
	errGarbage = errors.New("not a key of Kafka Connect")
)

// parseKey reads a key of any layout. It returns errForeign for a key of
// another connector, cluster or shape, and errGarbage for what Connect would
// not have written at all.
func parseKey(key []byte, connector, cluster string) (Key, error) {
	var pair []json.RawMessage
	if err := json.Unmarshal(key, &pair); err != nil || len(pair) != 2 {
		return Key{}, errGarbage
	}
	var name string
	// Not a struct: its fields would match without case.
	var fields map[string]json.RawMessage
	if json.Unmarshal(pair[0], &name) != nil || json.Unmarshal(pair[1], &fields) != nil {
		return Key{}, errGarbage
	}
	// MirrorMaker looks positions up by the whole map, so one with a field more
	// is not the one that it would find.
	if name != connector || len(fields) != 3 {
		return Key{}, errForeign
	}
	var alias *string
	if raw, ok := fields["cluster"]; !ok || json.Unmarshal(raw, &alias) != nil || alias == nil || *alias != cluster {
		return Key{}, errForeign
	}
	var topic *string
	var partition *int32
	for name, into := range map[string]any{"topic": &topic, "partition": &partition} {
		raw, ok := fields[name]
		if !ok {
			return Key{}, errForeign
		}
		if json.Unmarshal(raw, into) != nil {
			return Key{}, errGarbage
		}
	}
	if topic == nil || *topic == "" || partition == nil || *partition < 0 {
		return Key{}, errGarbage
	}
	return Key{Topic: *topic, Partition: *partition}, nil
}

// appendValue appends the value of a position: MirrorMaker's "offset" first,
// then what it does not know and does not mind. Topic ids are written as
// Kafka's Uuid prints itself.
func appendValue(b []byte, p Position) []byte {
	number := func(name string, n int64) {
		b = append(b, `,"`...)
		b = append(b, name...)
		b = append(b, `":`...)
		b = strconv.AppendInt(b, n, 10)
	}
	id := func(name string, id [16]byte) {
		b = append(b, `,"`...)
		b = append(b, name...)
		b = append(b, `":"`...)
		b = base64.RawURLEncoding.AppendEncode(b, id[:])
		b = append(b, '"')
	}
	b = append(b, `{"offset":`...)
	b = strconv.AppendInt(b, p.Offset, 10)
	number("producerId", p.ProducerID)
	number("producerEpoch", int64(p.ProducerEpoch))
	number("sequence", int64(p.Sequence))
	number("targetOffset", p.TargetOffset)
	id("targetTopicId", p.TargetTopicID)
	id("sourceTopicId", p.SourceTopicID)
	number("sourceLeaderEpoch", int64(p.SourceLeaderEpoch))
	b = append(b, `,"sourceEpochs":"`...)
	b = append(b, p.SourceEpochs.String()...)
	return append(b, `"}`...)
}

// parseValue reads a value. ok is false for one that says "no position" (a
// tombstone or JSON null). A value without all of our fields is a plain one, but
// for the leader epochs: one can do without.
func parseValue(value []byte) (p Position, ok bool, err error) {
	if len(value) == 0 || bytes.Equal(bytes.TrimSpace(value), []byte("null")) {
		return Position{}, false, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(value, &fields); err != nil {
		return Position{}, false, fmt.Errorf("not a JSON object: %w", err)
	}
	offset := int64(-1) // MirrorMaker takes a missing offset for "nothing yet"
	if raw, ok := fields["offset"]; ok {
		if err := json.Unmarshal(raw, &offset); err != nil || offset < -1 {
			return Position{}, false, fmt.Errorf("offset is %.40s, want an integer of -1 or more", raw)
		}
	}
	p = Position{Offset: offset}
	for name, into := range map[string]any{
		"producerId": &p.ProducerID, "producerEpoch": &p.ProducerEpoch, "sequence": &p.Sequence,
		"targetOffset": &p.TargetOffset, "sourceLeaderEpoch": &p.SourceLeaderEpoch,
		"targetTopicId": (*topicID)(&p.TargetTopicID), "sourceTopicId": (*topicID)(&p.SourceTopicID),
	} {
		raw, ok := fields[name]
		if !ok || bytes.Equal(raw, []byte("null")) || json.Unmarshal(raw, into) != nil {
			return Plain(offset), true, nil
		}
	}
	if raw, ok := fields["sourceEpochs"]; ok && json.Unmarshal(raw, &p.SourceEpochs) != nil {
		p.SourceEpochs = Epochs{}
	}
	return p, true, nil
}

// topicID is a Kafka Uuid in JSON: 16 bytes in unpadded URL-safe base64.
type topicID [16]byte

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *topicID) UnmarshalText(text []byte) error {
	if base64.RawURLEncoding.DecodedLen(len(text)) != len(id) {
		return fmt.Errorf("a topic id has %d characters, want 22", len(text))
	}
	_, err := base64.RawURLEncoding.Decode(id[:], text)
	return err
}
