package wire

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// BenchmarkAnswers reads fetch answers of 1 MiB, decoded, through a pipe in memory.
func BenchmarkAnswers(b *testing.B) {
	const size = 1 << 20
	resp := fetchRequest(0).ResponseKind()
	fetchAnswer(make([]byte, size))(resp)
	answer := encodeAnswer(0, resp)
	r, w := net.Pipe()
	defer r.Close()
	c := &Conn{o: Options{Frames: NewPool(8 << 20), MaxResponse: 2 * size, Timeout: 1 << 40}, nc: r, turn: make(chan struct{}, 1), done: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	got := make(chan error)
	go c.read()
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		c.enqueue(&call{key: 1, resp: fetchRequest(0).ResponseKind(), done: func(_ kmsg.Response, f *Frame, err error) {
			if err == nil {
				f.Release()
			}
			got <- err
		}})
		if _, err := w.Write(answer); err != nil {
			b.Fatal(err)
		}
		if err := <-got; err != nil {
			b.Fatal(err)
		}
	}
	w.Close()
	c.Close()
}

// BenchmarkProduce writes produce requests of 8 partitions.
func BenchmarkProduce(b *testing.B) {
	for name, size := range map[string]int{"16KiB": 16 << 10, "1MiB": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			req := produceOf(nil)
			batch := bytes.Repeat([]byte("r"), size)
			ps := &req.Topics[0].Partitions
			for len(*ps) < 8 {
				*ps = append(*ps, (*ps)[0])
			}
			for i := range *ps {
				(*ps)[i].Records = batch
			}
			e := encoder{format: kmsg.NewRequestFormatter(kmsg.FormatterClientID("mirror"))}
			w := bufio.NewWriterSize(writerOnly{}, 64<<10)
			b.SetBytes(int64(8 * size))
			b.ReportAllocs()
			for b.Loop() {
				e.encode(req, 1)
				if err := e.writeTo(w); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// writerOnly swallows what is written.
type writerOnly struct{}

func (writerOnly) Write(b []byte) (int, error) { return io.Discard.Write(b) }

// BenchmarkPool hands out and takes back a frame.
func BenchmarkPool(b *testing.B) {
	p := NewPool(8 << 20)
	b.ReportAllocs()
	for b.Loop() {
		p.Get(1 << 20).Release()
	}
}
