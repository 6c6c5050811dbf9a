// Package config is the mirror's TOML file: its types, its defaults, and a
// strict reading that reports everything wrong with a file at once, each with
// its line, its full key and what was expected there.
package config

import (
	"crypto/sha256"
	"log/slog"
	"regexp"
	"time"
)

// Config is a whole file, valid, with its defaults filled in.
type Config struct {
	File     string // as it was named to Load
	Admin    Admin
	Log      Log
	Clusters map[string]Cluster // by alias
	Flows    []Flow             // in the file's order
	Digest   [sha256.Size]byte  `json:"-"` // of the file's text

	lines   lines   // where its keys are
	sources sources // what the environment has completed
}

// Admin is the HTTP server for metrics, health and status.
type Admin struct {
	Listen      string // host:port; "" switches it off
	Granularity string // of the metrics; one of those below
}

// Granularities of the metrics that tell of partitions.
const (
	ByPartition = "partition"
	ByTopic     = "topic" // what its partitions come to
	ByFlow      = "flow"  // what all its partitions come to
)

// Log says what goes to stderr, and how.
type Log struct {
	Level  slog.Level
	Format string // auto (text on a terminal, json elsewhere), text or json
}

// Cluster is one Kafka cluster and how to reach it.
type Cluster struct {
	Alias     string
	Bootstrap []string // host:port each, or "embedded" alone
	ClientID  string
	Rack      string // for fetching from the closest replica (KIP-392); "": from leaders
	TLS       TLS
	SASL      SASL
}

// EmbeddedBootstrap in place of addresses asks for a cluster inside the process.
const EmbeddedBootstrap = "embedded"

// Embedded says that the cluster runs inside the process.
func (c Cluster) Embedded() bool {
	return len(c.Bootstrap) == 1 && c.Bootstrap[0] == EmbeddedBootstrap
}

// TLS is how connections to a cluster are encrypted. All its files are PEM;
// their paths are relative to the working directory or absolute.
type TLS struct {
	Enabled            bool
	CAFile             string // "": the system's authorities
	CertFile, KeyFile  string // the client's own, both or none
	ServerName         string // "": the host that is dialled
	InsecureSkipVerify bool
}

// Mechanisms of SASL.
const (
	Plain       = "plain"
	ScramSHA256 = "scram-sha-256"
	ScramSHA512 = "scram-sha-512"
	OAuth       = "oauthbearer"
	AWSMSKIAM   = "aws-msk-iam"
	KerberosV5  = "kerberos"
)

// SASL is how the mirror authenticates to a cluster.
type SASL struct {
	Mechanism    string // one of the mechanisms above; "": none
	Username     string // plain and scram
	Password     Secret // this or PasswordFile
	PasswordFile string
	OAuthBearer  OAuthBearer
	AWS          AWS
	Kerberos     Kerberos
}

// OAuthBearer is the client credentials grant of OAuth 2 (RFC 6749, 4.4).
type OAuthBearer struct {
	TokenURL, ClientID string
	ClientSecret       Secret // this or ClientSecretFile
	ClientSecretFile   string
	Scopes             []string
}

// AWS selects the identity for MSK IAM; what is empty comes from the
// environment, as with every AWS tool.
type AWS struct {
	Profile, Role, Region string
}

// Kerberos is an identity from a keytab.
type Kerberos struct {
	ConfigFile string // krb5.conf
	KeytabFile string
	Principal  string
	Service    string // the brokers' service name
}

// Flow is one direction: topics of the cluster From, copied to the cluster To.
type Flow struct {
	From, To string // aliases
	// Topics and ExcludeTopics match whole names (see Pattern); exclusion wins.
	Topics, ExcludeTopics []*regexp.Regexp
	// Groups and ExcludeGroups are the same for consumer groups of the source.
	Groups, ExcludeGroups []*regexp.Regexp
	Naming                Naming
	Start                 Start
	Isolation             Isolation
	Refresh               time.Duration // how often topics and partitions are looked up
	CommitInterval        time.Duration // how often positions are saved
	Grace                 time.Duration // to drain and save at stop
	Lanes                 int           // 0: from the number of cores, 4 at most
	Memory                int64         // bytes in flight, all partitions together
	OnDataLoss            string        // Continue or Halt: the source dropped records before they were copied
	OnRecreated           string        // Halt or Restart: the source topic was made again, or truncated
	OnLostPositions       string        // Halt or Restart: the target partition holds records, yet there is no position
	Resume                bool          // after a crash, skip what the target already holds
	Create                Create
	Positions             Positions
	OffsetSyncs           OffsetSyncs
	Checkpoints           Checkpoints
	Plugins               []Plugin // those that are switched on, in the file's order
}

// Name is the flow's name in logs, metrics and status: "from->to".
func (f Flow) Name() string { return f.From + "->" + f.To }

// What a flow does when a log is not the one that it knew.
const (
	Continue = "continue" // say it, count it, go on
	Halt     = "halt"     // stall the partition until somebody acts
	Restart  = "restart"  // copy again, and say so
)

// Replication policies.
const (
	DefaultPolicy  = "default"  // MirrorMaker's DefaultReplicationPolicy: <source alias><separator><topic>
	IdentityPolicy = "identity" // MirrorMaker's IdentityReplicationPolicy: the same name
)

// Naming maps topics of the source to topics of the target.
type Naming struct {
	Policy    string // DefaultPolicy or IdentityPolicy
	Separator string // between alias and topic
}

// StartKind is where a partition without a position begins.
type StartKind int

// Starts.
const (
	Earliest StartKind = iota
	Latest
	AtTime // the first record at or after Start.At
)

// Start is where the partitions begin that are there at a flow's first start.
type Start struct {
	Kind StartKind
	At   time.Time // for AtTime
}

// Isolation is which records of transactions are copied.
type Isolation int

// Isolation levels.
const (
	ReadCommitted   Isolation = iota // none of an aborted transaction
	ReadUncommitted                  // all, as MirrorMaker does unless told otherwise
)

// Create is how topics are made on the target, the mirror's own included.
type Create struct {
	ReplicationFactor int16             // 0: the target's default
	Configs           map[string]string // over the source topic's own
}

// Positions is where a flow keeps what it has copied, in MirrorMaker's format.
type Positions struct {
	Topic     string // on the target
	Connector string // the connector's name in the keys
}
