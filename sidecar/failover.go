package sidecar

import (
	"context"
	"errors"
	"fmt"

	"mirror/sidecar/config"
	"mirror/sidecar/failover"
	"mirror/sidecar/pipeline"
	"mirror/sidecar/status"
)

// Translate says where a group would go on at the target, now: of all flows whose source
// has it, or of the one named flow; of all topics, or of the one named topic. It changes
// nothing. Without any answer the error says why; it is a failover.ErrNoGroup where no flow
// follows such a group, and a failover.ErrOff where none follows any.
func (m *Mirror) Translate(ctx context.Context, flow, group, topic string) (status.Translations, error) {
	out := status.Translations{Groups: []status.GroupTranslation{}, Errors: []string{}}
	flows, err := m.named(flow)
	if err != nil {
		return out, err
	}
	var absent []error // which is none where another flow follows it
	var errs []error
	for _, f := range flows {
		t, err := f.Explain(ctx, group, topic)
		switch {
		case err == nil:
			out.Groups = append(out.Groups, t)
		case errors.Is(err, failover.ErrNoGroup), errors.Is(err, failover.ErrOff):
			absent = append(absent, err)
		default:
			errs = append(errs, err)
			out.Errors = append(out.Errors, err.Error())
		}
	}
	switch {
	case len(out.Groups) > 0:
		return out, nil
	case len(errs) > 0:
		return out, errors.Join(errs...)
	}
	return out, errors.Join(absent...)
}

// Lag says what each group would lose or repeat if it failed over now, of all flows that
// follow any or of the one named flow. It changes nothing. Without any answer the error
// says why; it is a failover.ErrOff where no flow follows groups.
func (m *Mirror) Lag(ctx context.Context, flow string) (status.Lags, error) {
	out := status.Lags{Groups: []status.GroupLag{}, Errors: []string{}}
	flows, err := m.named(flow)
	if err != nil {
		return out, err
	}
	var off, errs []error
	for _, f := range flows {
		err := f.Lag(ctx, func(l status.GroupLag) { out.Groups = append(out.Groups, l) })
		switch {
		case err == nil:
		case errors.Is(err, failover.ErrOff):
			off = append(off, err)
		default:
			errs = append(errs, err)
			out.Errors = append(out.Errors, err.Error())
		}
	}
	switch {
	case len(off)+len(errs) < len(flows):
		return out, nil
	case len(errs) > 0:
		return out, errors.Join(errs...)
	}
	return out, errors.Join(off...)
}

// named are the flows of a name; "": all.
func (m *Mirror) named(flow string) ([]*pipeline.Flow, error) {
	if flow == "" {
		return m.flows, nil
	}
	var names []string
	for _, f := range m.flows {
		name := f.Name()
		if name == flow {
			return []*pipeline.Flow{f}, nil
		}
		names = append(names, name)
	}
	return nil, fmt.Errorf("%w: there is no flow %q, %s", failover.ErrNoGroup, flow, config.Suggest(flow, names))
}
