package batch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// decompress gives what src holds, which is at most limit bytes or else the error is ErrTooLarge: a megabyte of zstd
// can become a gigabyte. It writes into the room of buf if there is enough, from its start. Bytes that the codec does
// not take are ErrCorrupt.
func decompress(buf, src []byte, c Codec, limit int) (out []byte, err error) {
	limit = min(limit, math.MaxInt32) // no reader of Kafka's takes more
	switch c {
	case None:
		out = src
	case Gzip:
		out, err = gunzip(buf[:0], src, limit)
	case Snappy:
		out, err = decodeSnappy(buf[:0], src, limit)
	case LZ4:
		out, err = decodeLZ4(buf[:0], src, limit)
	case Zstd:
		out, err = decodeZstd(buf[:0], src, limit)
	default:
		return nil, corrupt("codec %d", int8(c))
	}
	switch {
	case errors.Is(err, ErrTooLarge), err == nil && len(out) > limit:
		return nil, fmt.Errorf("%w: more than %d bytes of %s", ErrTooLarge, limit, c)
	case err != nil:
		return nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, c, err)
	}
	return out, nil
}

// compress appends what c makes of src to dst.
func compress(dst, src []byte, c Codec) ([]byte, error) {
	switch c {
	case None:
		return append(dst, src...), nil
	case Gzip:
		return gzipTo(dst, src)
	case Snappy:
		return encodeSnappy(dst, src), nil
	case LZ4:
		return encodeLZ4(dst, src)
	case Zstd:
		return zstdWriter().EncodeAll(src, dst), nil
	}
	return nil, fmt.Errorf("compress: no codec %d", int8(c))
}

// sink is a writer that appends.
type sink struct{ b []byte }

func (s *sink) Write(p []byte) (int, error) {
	s.b = append(s.b, p...)
	return len(p), nil
}

// readAll appends what r gives to dst, and no more than limit bytes.
func readAll(dst []byte, r io.Reader, limit int) ([]byte, error) {
	start := len(dst)
	for {
		dst = slices.Grow(dst, 512)
		n, err := r.Read(dst[len(dst):min(cap(dst), max(start+limit+1, len(dst)+1))])
		dst = dst[:len(dst)+n]
		switch {
		case len(dst)-start > limit:
			return nil, ErrTooLarge
		case err == io.EOF:
			return dst, nil
		case err != nil:
			return nil, err
		}
	}
}

type gzipReader struct {
	zip gzip.Reader
	src bytes.Reader
}

var (
	gzipReaders = sync.Pool{New: func() any { return new(gzipReader) }}
	gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}
)

func gunzip(dst, src []byte, limit int) ([]byte, error) {
	r := gzipReaders.Get().(*gzipReader)
	defer gzipReaders.Put(r)
	defer r.src.Reset(nil)
	r.src.Reset(src)
	if err := r.zip.Reset(&r.src); err != nil {
		return nil, err
	}
	return readAll(dst, &r.zip, limit)
}

func gzipTo(dst, src []byte) ([]byte, error) {
	w := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(w)
	out := sink{dst}
	w.Reset(&out)
	defer w.Reset(nil)
	if _, err := w.Write(src); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.b, nil
}

// zstdWriter makes frames with their content size; a reader needs a window of at most 512 KiB for them. It is shared:
// EncodeAll keeps no state, and has as many encoders as there are processors.
var zstdWriter = sync.OnceValue(func() *zstd.Encoder {
	w, err := zstd.NewWriter(nil, zstd.WithWindowSize(512<<10), zstd.WithZeroFrames(true), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic("batch: zstd encoder options: " + err.Error())
	}
	return w
})

type zstdReader struct {
	zstd *zstd.Decoder
	src  bytes.Reader
}

// maxZstdWindow is what Java's decoder takes, 2^27: the most memory that a frame can make a reader allocate.
const maxZstdWindow = 128 << 20

// zstdReaders decode as streams, without goroutines: only so can the output be cut off at any limit, and the window of
// a frame, which is often larger than what it holds, be larger than that.
var zstdReaders = sync.Pool{New: func() any {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
	if err != nil {
		panic("batch: zstd decoder options: " + err.Error())
	}
	return &zstdReader{zstd: r}
}}

func decodeZstd(dst, src []byte, limit int) ([]byte, error) {
	r := zstdReaders.Get().(*zstdReader)
	defer zstdReaders.Put(r)
	defer r.src.Reset(nil)
	r.src.Reset(src)
	if err := r.zstd.Reset(&r.src); err != nil {
		return nil, err
	}
	return readAll(dst, r.zstd, limit)
}

type lz4Reader struct {
	lz4 *lz4.Reader
	src bytes.Reader
}

var (
	lz4Readers = sync.Pool{New: func() any { return &lz4Reader{lz4: lz4.NewReader(nil)} }}
	lz4Writers = sync.Pool{New: func() any {
		w := lz4.NewWriter(nil)
		// What Java's producer writes: its reader has a buffer of the size of a block.
		if err := w.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false)); err != nil {
			panic("batch: lz4 writer options: " + err.Error())
		}
		return w
	}}
)

func decodeLZ4(dst, src []byte, limit int) ([]byte, error) {
	r := lz4Readers.Get().(*lz4Reader)
	defer lz4Readers.Put(r)
	defer r.src.Reset(nil)
	r.src.Reset(src)
	r.lz4.Reset(&r.src)
	return readAll(dst, r.lz4, limit)
}

func encodeLZ4(dst, src []byte) ([]byte, error) {
	w := lz4Writers.Get().(*lz4.Writer)
	defer lz4Writers.Put(w)
	out := sink{dst}
	w.Reset(&out)
	if _, err := w.Write(src); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.b, nil
}
