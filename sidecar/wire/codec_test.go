package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

// TestProduceIsEncodedAsByKmsg holds the encoding that leaves record sets in their place to that of
// kmsg.
func TestProduceIsEncodedAsByKmsg(t *testing.T) {
	format := kmsg.NewRequestFormatter(kmsg.FormatterClientID("client"))
	e := encoder{format: format}
	rapid.Check(t, func(t *rapid.T) {
		req := drawProduce(t)
		want := format.AppendRequest(nil, req, 7)
		var got bytes.Buffer
		e.encode(req, 7)
		if err := e.writeTo(bufio.NewWriterSize(&got, 1024)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("version %d: encoded as\n%x\nwant\n%x", req.Version, got.Bytes(), want)
		}
	})
}

func drawProduce(t *rapid.T) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version = rapid.Int16Range(0, 13).Draw(t, "version")
	req.Acks = rapid.Int16Range(-1, 1).Draw(t, "acks")
	req.TimeoutMillis = rapid.Int32().Draw(t, "timeout")
	if rapid.Bool().Draw(t, "transactional") {
		req.TransactionID = kmsg.StringPtr(rapid.String().Draw(t, "id"))
	}
	records := rapid.Custom(func(t *rapid.T) []byte {
		n := rapid.SampledFrom([]int{-1, 0, 1, 126, 127, 128, smallestCut - 1, smallestCut, smallestCut + 1, 3000}).Draw(t, "size")
		if n < 0 {
			return nil
		}
		b := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "pattern"), n)
		return b[:n]
	})
	for range rapid.IntRange(0, 3).Draw(t, "topics") {
		topic := kmsg.NewProduceRequestTopic()
		topic.Topic = rapid.StringN(0, 20, 200).Draw(t, "topic")
		copy(topic.TopicID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "topic id"))
		for range rapid.IntRange(0, 4).Draw(t, "partitions") {
			p := kmsg.NewProduceRequestTopicPartition()
			p.Partition = rapid.Int32().Draw(t, "partition")
			p.Records = records.Draw(t, "records")
			topic.Partitions = append(topic.Partitions, p)
		}
		req.Topics = append(req.Topics, topic)
	}
	return req
}

func TestEncoderKeepsLittle(t *testing.T) {
	e := encoder{format: kmsg.NewRequestFormatter()}
	big := kmsg.NewPtrSASLAuthenticateRequest()
	big.SASLAuthBytes = make([]byte, 2*largestKept)
	e.encode(big, 1)
	req := kmsg.NewPtrProduceRequest()
	req.Version = 9
	req.Topics = []kmsg.ProduceRequestTopic{{Partitions: []kmsg.ProduceRequestTopicPartition{{Records: make([]byte, 8<<20)}}}}
	e.encode(req, 2)
	if len(e.cuts) != 1 {
		t.Fatalf("%d record sets were cut in, want 1", len(e.cuts))
	}
	if err := e.writeTo(bufio.NewWriter(&bytes.Buffer{})); err != nil {
		t.Fatal(err)
	}
	if cap(e.buf) > largestKept {
		t.Errorf("the encoder keeps %d bytes", cap(e.buf))
	}
	if kept := e.cuts[:1]; len(e.cuts) != 0 || kept[0].piece != nil {
		t.Error("the encoder keeps the record set")
	}
}

func TestSkipTags(t *testing.T) {
	tests := []struct {
		in   []byte
		rest int // bytes left, -1: an error
	}{
		{[]byte{0}, 0},
		{[]byte{0, 1, 2, 3}, 3},
		{[]byte{1, 5, 2, 'a', 'b', 9}, 1},
		{[]byte{2, 0, 0, 1, 1, 'x'}, 0},
		{nil, -1},
		{[]byte{1}, -1},
		{[]byte{1, 0}, -1},
		{[]byte{1, 0, 2, 'a'}, -1},
		{[]byte{0xff, 0xff, 0xff, 0xff, 0x0f}, -1},
		{bytes.Repeat([]byte{0xff}, 12), -1},
		{append([]byte{1, 0}, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), -1},
	}
	for _, tt := range tests {
		rest, err := skipTags(tt.in)
		if got := len(rest); (err != nil) != (tt.rest < 0) || err == nil && got != tt.rest {
			t.Errorf("skipTags(%x) leaves %d bytes, %v; want %d", tt.in, got, err, tt.rest)
		}
	}
}

// FuzzDecode feeds answers to the decoder: it must come back, with an error or with slices of the
// frame.
func FuzzDecode(f *testing.F) {
	seed := func(resp kmsg.Response) {
		f.Add(resp.Key(), resp.GetVersion(), encodeAnswer(1, resp)[4:])
	}
	for _, version := range []int16{4, 11, 12, 13, 17} {
		resp := kmsg.NewPtrFetchResponse()
		resp.Version = version
		fetchAnswer([]byte("records"))(resp)
		resp.Topics[0].Partitions[0].CurrentLeader.LeaderID = 3
		resp.Topics[0].Partitions[0].AbortedTransactions = make([]kmsg.FetchResponseTopicPartitionAbortedTransaction, 2)
		seed(resp)
	}
	for _, version := range []int16{3, 8, 9, 13} {
		resp := kmsg.NewPtrProduceResponse()
		resp.Version = version
		p := kmsg.NewProduceResponseTopicPartition()
		p.ErrorRecords = make([]kmsg.ProduceResponseTopicPartitionErrorRecord, 2)
		resp.Topics = []kmsg.ProduceResponseTopic{{Partitions: []kmsg.ProduceResponseTopicPartition{p}}}
		seed(resp)
	}
	for _, resp := range []kmsg.Response{kmsg.NewPtrSASLHandshakeResponse(), kmsg.NewPtrSASLAuthenticateResponse(), kmsg.NewPtrApiVersionsResponse()} {
		seed(resp)
	}
	f.Fuzz(func(t *testing.T, key, version int16, frame []byte) {
		req := kmsg.RequestForKey(key)
		if req == nil || version < 0 || version > req.MaxVersion() || len(frame) < 4 {
			t.Skip()
		}
		req.SetVersion(version)
		resp := req.ResponseKind()
		if err := decode(resp, frame); err != nil {
			return
		}
		if r, ok := resp.(*kmsg.FetchResponse); ok {
			sum := 0
			for _, topic := range r.Topics {
				for _, p := range topic.Partitions {
					sum += len(p.RecordBatches)
				}
			}
			if sum > len(frame) {
				t.Errorf("%d bytes of records in a frame of %d", sum, len(frame))
			}
		}
	})
}

// FuzzVersions feeds answers to the ApiVersions request.
func FuzzVersions(f *testing.F) {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.ApiKeys = spoken
	for _, version := range []int16{0, 3, 5} {
		resp.Version = version
		f.Add(version, encodeAnswer(1, resp)[4:])
	}
	f.Add(int16(5), binary.BigEndian.AppendUint16(make([]byte, 4), 35))
	f.Fuzz(func(t *testing.T, version int16, frame []byte) {
		if version < 0 || version > 5 || len(frame) < 4 {
			t.Skip()
		}
		again, err := readVersions(kmsg.NewPtrApiVersionsResponse(), version, frame)
		if err == nil && again >= version {
			t.Errorf("ask with version %d again after %d", again, version)
		}
	})
}
