package admin

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"mirror/sidecar/status"
)

// untranslated and unlagged are the answers of a mirror whose groups nobody asks about.
func untranslated(context.Context, string, string, string) (status.Translations, error) {
	panic("a translation")
}

func unlagged(context.Context, string) (status.Lags, error) { panic("a lag") }

// nothing is an error that there is nothing to say.
type nothing struct{}

func (nothing) Error() string      { return "no such group" }
func (nothing) NothingToSay() bool { return true }

func translation() status.GroupTranslation {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	return status.GroupTranslation{
		Flow: "primary->backup", Group: "orders-service", At: at, State: "Stable", TargetState: "Absent",
		Partitions: []status.TranslatedOffset{
			{Topic: "orders", Target: "primary.orders", Partition: 0, Source: 100, Metadata: "m", Offset: 97, Outcome: status.OutcomeExact, Plugin: "offset-sync",
				Run: &status.Run{First: 90, Last: 1089, Target: 87}, Nearest: &status.SyncPoint{Upstream: 90, Downstream: 87}, Committed: -1, Would: status.SyncCommit,
				Checkpoint: &status.WrittenCheckpoint{Upstream: 100, Downstream: 97, Written: at.Add(-3 * time.Second), Age: 3}},
			{Topic: "orders", Target: "primary.orders", Partition: 1, Source: 12, Offset: -1, Outcome: status.OutcomeNone, Reason: status.InexactBeforeFirst,
				Plugin: "offset-sync", Committed: 5, Would: status.SyncHold, Held: status.HeldNone},
		},
	}
}

func TestTranslate(t *testing.T) {
	var asked []string
	url := serveAnswers(t, Answers{Status: report, Translate: func(_ context.Context, flow, group, topic string) (status.Translations, error) {
		asked = append(asked, strings.Join([]string{flow, group, topic}, "/"))
		switch group {
		case "orders-service":
			return status.Translations{Groups: []status.GroupTranslation{translation()}, Errors: []string{"flow x->y: away"}}, nil
		case "nobody":
			return status.Translations{}, nothing{}
		}
		return status.Translations{}, errors.New("the cluster is away")
	}})
	code, body := get(t, url+"/translate?group=orders-service&topic=orders&flow=primary-%3Ebackup")
	want := `group orders-service, flow primary->backup: 1 exact, 1 none
on the source it is Stable, on the target Absent; sync_groups is off
TOPIC   PARTITION  OFFSET  ON TARGET  OUTCOME  WHY                   RUN            OFFSET SYNC  CHECKPOINT  AGE  GROUP THERE  SYNC
orders  0          100     97         exact    -                     90-1089 at 87  90 to 87     100 to 97   3s   -            would commit 97
orders  1          12      -          none     before what is known  -              -            -           -    5            nothing: not translated
no answer: flow x->y: away
`
	if code != http.StatusOK || body != want {
		t.Errorf("%d\n%s\nwant\n%s", code, body, want)
	}
	for path, c := range map[string]struct {
		code int
		want string
	}{
		"/translate":              {400, "which group? /translate?group=NAME\n"},
		"/translate?group=nobody": {404, "no such group\n"},
		"/translate?group=other":  {503, "the cluster is away\n"},
	} {
		if code, body := get(t, url+path); code != c.code || body != c.want {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
	if asked[0] != "primary->backup/orders-service/orders" {
		t.Errorf("asked for %q", asked)
	}
}

// The JSON of both is a contract.
func TestGroupsGolden(t *testing.T) {
	url := serveAnswers(t, Answers{Status: report,
		Translate: func(context.Context, string, string, string) (status.Translations, error) {
			return status.Translations{Groups: []status.GroupTranslation{translation()}}, nil
		},
		Lag: func(context.Context, string) (status.Lags, error) {
			return status.Lags{Groups: []status.GroupLag{{Flow: "primary->backup", Group: "g", Outcome: status.OutcomeBound, Offsets: 3,
				By: status.ByGroup, Lose: 1, Repeat: 20, AtMost: true, Unknown: 1, NotCopied: 4, Error: "why"}}}, nil
		},
	})
	for _, path := range []string{"translate", "lag"} {
		golden(t, url+"/"+path+"?group=orders-service", path+".json")
	}
}

func TestLag(t *testing.T) {
	lags := status.Lags{Groups: []status.GroupLag{
		{Flow: "a->b", Group: "exactly", Outcome: status.OutcomeExact, Offsets: 12, By: status.ByCheckpoint, NotCopied: 7},
		{Flow: "a->b", Group: "roughly", Outcome: status.OutcomeBound, Offsets: 3, By: status.ByCheckpoint, Repeat: 20, AtMost: true, Unknown: 1},
		{Flow: "a->b", Group: "denied", Outcome: status.OutcomeNone, By: status.ByCheckpoint, Error: "a right is missing"},
	}}
	var failure error
	url := serveAnswers(t, Answers{Status: report, Lag: func(_ context.Context, flow string) (status.Lags, error) {
		if flow == "none" {
			return status.Lags{}, nil
		}
		return lags, failure
	}})
	code, body := get(t, url+"/lag")
	want := `groups: 1 exact, 1 bound, 1 none; failing over now they would lose 0 and repeat ≤20 records, beside 1 offsets of which that is not known
FLOW  GROUP    OFFSETS  OUTCOME  LOSES  REPEATS  NOT KNOWN  NOT COPIED  GOES ON BY
a->b  exactly  12       exact    0      0        0          7           checkpoint
a->b  roughly  3        bound    0      ≤20      1          0           checkpoint
a->b  denied   0        none     0      0        0          0           a right is missing
`
	if code != http.StatusOK || body != want {
		t.Errorf("%d\n%s\nwant\n%s", code, body, want)
	}
	if code, body := get(t, url+"/lag?flow=none"); code != http.StatusOK || body != "no group has offsets of mirrored partitions\n" {
		t.Errorf("%d %q", code, body)
	}
	failure = nothing{}
	if code, _ := get(t, url+"/lag"); code != NothingToSay {
		t.Errorf("off: %d", code)
	}
}
