package produce

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
)

// verdict is what an error means for a partition.
type verdict int

const (
	again      verdict = iota // the same bytes once more, later
	moved                     // the same, to another leader
	tooLarge                  // smaller batches
	badRecords                // the content: nothing helps but the record's end
	refused                   // something that only an operator can change
	lost                      // the broker's idea of our sequence is not ours
)

var verdicts = map[error]verdict{
	kerr.NotLeaderForPartition:   moved,
	kerr.LeaderNotAvailable:      moved,
	kerr.FencedLeaderEpoch:       moved,
	kerr.UnknownTopicOrPartition: moved,
	kerr.UnknownTopicID:          moved,
	kerr.InconsistentTopicID:     moved,
	kerr.KafkaStorageError:       moved,
	kerr.ReplicaNotAvailable:     moved,

	kerr.MessageTooLarge:    tooLarge,
	kerr.RecordListTooLarge: tooLarge,

	kerr.InvalidRecord:                      badRecords,
	kerr.InvalidTimestamp:                   badRecords,
	kerr.UnsupportedForMessageFormat:        refused,
	kerr.UnsupportedCompressionType:         refused,
	kerr.PolicyViolation:                    refused,
	kerr.InvalidTopicException:              refused,
	kerr.InvalidRequiredAcks:                refused,
	kerr.InvalidRequest:                     refused,
	kerr.UnsupportedVersion:                 refused,
	kerr.TopicAuthorizationFailed:           refused,
	kerr.ClusterAuthorizationFailed:         refused,
	kerr.TransactionalIDAuthorizationFailed: refused,

	kerr.OutOfOrderSequenceNumber: lost,
	kerr.UnknownProducerID:        lost,
	kerr.InvalidProducerEpoch:     lost,
	kerr.InvalidProducerIDMapping: lost,
	kerr.ProducerFenced:           lost,
}

// verdictOf: what is not listed (a cut connection, a time-out, too few replicas,
// CORRUPT_MESSAGE, whose cause is the link, UNKNOWN_SERVER_ERROR) is tried again.
func verdictOf(err error) verdict {
	var k *kerr.Error
	if errors.As(err, &k) {
		if v, ok := verdicts[k]; ok {
			return v
		}
	}
	return again
}
