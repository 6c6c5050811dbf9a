package integration

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"mirror/integration/contract"
	"mirror/integration/kafkatest"
)

// forgetful has a broker forget a producer within moments once the last records
// that it has of it are ten minutes old. Others do so after a day, and look every ten
// minutes.
var forgetful = map[string]string{
	"producer.id.expiration.ms": "600000", "producer.id.expiration.check.interval.ms": "10",
	"log.retention.ms": "-1",
}

const month = 30 * 24 * time.Hour

// TestForgetful has a target that knows no producer of the records that it gets:
// they are old. It takes any sequence, and a resend is stored again.
func TestForgetful(t *testing.T) {
	target := kafkatest.Start(t, kafkatest.Network(t), kafkatest.Options{Name: "forgetful", Config: forgetful})
	source, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(source.Close)
	pair := contract.Pair{
		Source: contract.NewCluster(t, source.ListenAddrs(), ""),
		Target: contract.NewCluster(t, target.Bootstrap(), ""),
	}
	link := target.Nodes[0].Proxy
	contract.Play(t, func(testing.TB) contract.Pair { return pair }, []contract.Scenario{
		{Name: "old-cut", Alone: true, Run: func(e *contract.Env) { oldRecordsOverACutLink(e, link) }},
		{Name: "old-kill", Alone: true, Run: func(e *contract.Env) { contract.KillLosesAndRepeatsNothing(e, month) }},
	})
}

// Nothing is lost and nothing is there twice: what may be stored is looked for.
func oldRecordsOverACutLink(e *contract.Env, link *kafkatest.Proxy) {
	topic := e.Topic("t")
	e.Create(e.Source, topic, 3, "retention.ms", "-1")
	load := e.AgedLoad(e.Source, topic, 3, month)
	e.Cleanup(func() { link.Restore(); link.SetDelay(0) })
	link.SetDelay(5 * time.Millisecond) // so that much is on its way
	m := e.Start()
	m.Progress(topic, 500)
	for range 8 {
		before := errors(m.Flow)
		link.Cut()
		m.Wait("the cut to be noticed", func() string {
			if errors(m.Flow) == before {
				return "no error counted"
			}
			return ""
		})
		link.Restore()
		m.Progress(topic, 500)
	}
	load.Stop()
	m.CaughtUp(topic)
	m.WantSame(topic)
}
