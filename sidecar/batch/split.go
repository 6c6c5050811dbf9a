package batch

import "fmt"

// SplitAt makes two batches of a verified one of magic 2: the first n records and the rest, each at offsets from 0 on
// without holes, and with the same codec. The batches have no producer: [Batch.Rewrite] gives them
// one. The error is [ErrIndivisible] unless 0 < n < the number of records, or wraps [ErrCorrupt] or [ErrTooLarge],
// which is when the records take more than limit bytes uncompressed.
func SplitAt(b Batch, n int32, limit int) (head, tail Batch, err error) {
	return split(b, limit, func([]byte) (int32, error) { return n, nil })
}

// Halves is [SplitAt] where the records on both sides take about the same room: for a batch that is too large.
func Halves(b Batch, limit int) (head, tail Batch, err error) {
	return split(b, limit, func(body []byte) (int32, error) {
		s, err := scan(b, body)
		if err != nil {
			return 0, err
		}
		for s.left > 1 && len(s.rest) > len(body)/2 {
			if _, err := s.next(); err != nil {
				return 0, err
			}
		}
		return max(b.Count()-s.left, 1), nil
	})
}

func split(b Batch, limit int, at func(body []byte) (int32, error)) (head, tail Batch, err error) {
	if b.legacy() || b.Control() {
		return nil, nil, fmt.Errorf("split: %w: %v", errUnfit, b)
	}
	t := getTools()
	defer t.put()
	body, err := t.open(b, limit)
	if err != nil {
		return nil, nil, fmt.Errorf("split: %w", err)
	}
	n, err := at(body)
	if err != nil {
		return nil, nil, fmt.Errorf("split: %w", err)
	}
	if n <= 0 || n >= b.Count() {
		return nil, nil, fmt.Errorf("split %d records at %d: %w", b.Count(), n, ErrIndivisible)
	}
	s, err := scan(b, body)
	for ; err == nil && s.left > 0; n-- {
		if n == 0 {
			if head, err = t.w.Build(nil, b.Codec()); err != nil {
				break
			}
		}
		var r raw
		if r, err = s.next(); err == nil {
			t.w.addRaw(r)
		}
	}
	if err == nil {
		err = s.end()
	}
	if err == nil {
		tail, err = t.w.Build(nil, b.Codec())
	}
	if err != nil {
		return nil, nil, fmt.Errorf("split: %w", err)
	}
	return head, tail, nil
}
