package plugins

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero/sys"

	"mirror/abi"
)

// Failure is why a hook did not do what it should.
type Failure struct {
	Hook   abi.Hook // 0: the instance could not even begin
	Status abi.Status
	Text   string
}

func (f *Failure) Error() string {
	what := "it cannot begin"
	if f.Hook != 0 {
		what = f.Hook.Export() + " failed"
	}
	if f.Text == "" {
		return fmt.Sprintf("%s: %v (%d)", what, f.Status, int(f.Status))
	}
	return fmt.Sprintf("%s: %v (%d): %s", what, f.Status, int(f.Status), f.Text)
}

// trapped says that the guest did not return.
func (f *Failure) trapped() bool { return f.Status == abi.Trap || f.Status == abi.Deadline }

// failed tells what an error of wazero's means.
func (i *instance) failed(h abi.Hook, err error) error {
	f := &Failure{Hook: h, Status: abi.Trap}
	var exit *sys.ExitError
	exited := errors.As(err, &exit)
	switch {
	case i.caller.Err() != nil && (exited || errors.Is(err, i.caller.Err())):
		return i.caller.Err()
	case errors.Is(err, errDeadline) || exited && exit.ExitCode() == sys.ExitCodeDeadlineExceeded:
		f.Status, f.Text = abi.Deadline, errDeadline.Error()
	case errors.Is(err, errDepth):
		f.Text = errDepth.Error()
	case exited:
		f.Text = fmt.Sprintf("it exited with code %d", exit.ExitCode())
	default:
		f.Text = trace(err)
	}
	if i.said != "" {
		f.Text += ": " + i.said
	}
	return f
}

// trace shortens wazero's account of a trap to the cause and the innermost
// functions.
func trace(err error) string {
	const most = 4
	all := strings.Split(err.Error(), "\n")
	cause := strings.TrimPrefix(strings.TrimSuffix(all[0], " (recovered by wazero)"), "wasm error: ")
	var at []string
	for _, l := range all[1:] {
		if name, ok := strings.CutPrefix(l, "\t"); ok && len(at) < most {
			name, _, _ = strings.Cut(name, "(")
			at = append(at, printable(strings.TrimPrefix(name, ".")))
		}
	}
	if len(at) == 0 {
		return printable(cause)
	}
	return printable(cause) + " in " + strings.Join(at, " < ")
}

// returned is the failure of a hook that returned something else than 0.
func (i *instance) returned(h abi.Hook, status int32) *Failure {
	f := &Failure{Hook: h, Status: abi.Status(status), Text: i.said}
	if status > 0 || !f.Status.Known() || f.trapped() {
		f.Status = abi.Fatal
		f.Text = strings.TrimSuffix(fmt.Sprintf("it returned %d: %s", status, i.said), ": ")
	}
	return f
}

// asFailure splits what tell and start return: a failure, or the end of ctx.
func asFailure(err error) (*Failure, error) {
	var f *Failure
	if errors.As(err, &f) {
		return f, nil
	}
	return nil, err
}
