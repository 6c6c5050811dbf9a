package wire

import (
	"bufio"
	"encoding/binary"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// encoder turns requests into bytes. The record sets of a produce request are not copied: they stay
// where they are, cut into the encoding of all the rest.
type encoder struct {
	format *kmsg.RequestFormatter
	buf    []byte // of the last request, kept for the next one
	cuts   []cut
}

// cut says that piece belongs before the byte at of encoder.buf.
type cut struct {
	at    int
	piece []byte
}

const (
	// smallestCut is the size from which a record set is cut in rather than copied.
	smallestCut = 512
	// largestKept is the most memory that an encoder holds on to between requests.
	largestKept = 1 << 20
)

// encode takes the place of the last request with req.
func (e *encoder) encode(req kmsg.Request, corr int32) {
	if cap(e.buf) > largestKept {
		e.buf = nil
	}
	if p, ok := req.(*kmsg.ProduceRequest); ok && p.Version >= 3 {
		req = &cutProduce{p, e}
	}
	e.buf = e.format.AppendRequest(e.buf[:0], req, corr)
	size := len(e.buf) - 4
	for _, c := range e.cuts {
		size += len(c.piece)
	}
	binary.BigEndian.PutUint32(e.buf, uint32(size))
}

// writeTo writes the request.
func (e *encoder) writeTo(w *bufio.Writer) error {
	from := 0
	for _, c := range e.cuts {
		w.Write(e.buf[from:c.at]) // an error stays until Flush
		w.Write(c.piece)
		from = c.at
	}
	w.Write(e.buf[from:])
	clear(e.cuts) // the record sets are not ours to keep
	e.cuts = e.cuts[:0]
	return w.Flush()
}

// cutProduce is a produce request of version 3 or later that notes where its record sets go instead
// of copying them.
type cutProduce struct {
	*kmsg.ProduceRequest
	e *encoder
}

// AppendTo encodes the body as kmsg does, without tagged fields: nobody sets any. The schema is
// ProduceRequest.json of Apache Kafka.
func (r *cutProduce) AppendTo(dst []byte) []byte {
	flexible := r.IsFlexible()
	dst = appendNullableString(dst, r.TransactionID, flexible)
	dst = binary.BigEndian.AppendUint16(dst, uint16(r.Acks))
	dst = binary.BigEndian.AppendUint32(dst, uint32(r.TimeoutMillis))
	dst = appendLength(dst, len(r.Topics), flexible)
	for i := range r.Topics {
		t := &r.Topics[i]
		if r.Version >= 13 {
			dst = append(dst, t.TopicID[:]...)
		} else {
			dst = appendNullableString(dst, &t.Topic, flexible)
		}
		dst = appendLength(dst, len(t.Partitions), flexible)
		for j := range t.Partitions {
			p := &t.Partitions[j]
			dst = binary.BigEndian.AppendUint32(dst, uint32(p.Partition))
			dst = r.appendRecords(dst, p.Records, flexible)
			dst = appendNoTags(dst, flexible)
		}
		dst = appendNoTags(dst, flexible)
	}
	return appendNoTags(dst, flexible)
}

func (r *cutProduce) appendRecords(dst, records []byte, flexible bool) []byte {
	if records == nil {
		return appendLength(dst, -1, flexible)
	}
	dst = appendLength(dst, len(records), flexible)
	if len(records) < smallestCut {
		return append(dst, records...)
	}
	r.e.cuts = append(r.e.cuts, cut{len(dst), records})
	return dst
}

// appendLength encodes the length of an array or of bytes, -1 for null (KIP-482 for the flexible
// form).
func appendLength(dst []byte, n int, flexible bool) []byte {
	if flexible {
		return binary.AppendUvarint(dst, uint64(n+1))
	}
	return binary.BigEndian.AppendUint32(dst, uint32(int32(n)))
}

func appendNullableString(dst []byte, s *string, flexible bool) []byte {
	n := -1
	if s != nil {
		n = len(*s)
	}
	if flexible {
		dst = binary.AppendUvarint(dst, uint64(n+1))
	} else {
		dst = binary.BigEndian.AppendUint16(dst, uint16(int16(n)))
	}
	if s != nil {
		dst = append(dst, *s...)
	}
	return dst
}

func appendNoTags(dst []byte, flexible bool) []byte {
	if flexible {
		dst = append(dst, 0)
	}
	return dst
}

// steady writes to the connection in parts that each have Options.Timeout, so that a slow link is
// no error and a dead one is.
type steady struct {
	c *Conn
}

func (s steady) Write(b []byte) (int, error) {
	const part = 256 << 10
	written := 0
	for written < len(b) {
		if err := s.c.nc.SetWriteDeadline(time.Now().Add(s.c.o.Timeout)); err != nil {
			return written, err
		}
		n, err := s.c.nc.Write(b[written:min(len(b), written+part)])
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}
