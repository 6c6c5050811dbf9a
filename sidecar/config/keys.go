package config

import "slices"

// Whether a key's change takes effect in a running mirror. What is bound to
// connections, to names on the target or to where a flow began is not changed
// under its feet.
const (
	live    = true
	restart = false
)

// key is a key of a table of the file, whose content is a T.
type key[T any] struct {
	name string       // within the table, with the sub-tables it is in
	live bool         // live or restart
	at   func(*T) any // a pointer to its value
}

// These are all keys. A test holds them against those that are read, and against
// the fields of the types.
var (
	fileKeys = []key[Config]{
		{"admin.listen", restart, func(c *Config) any { return &c.Admin.Listen }},
		{"admin.granularity", restart, func(c *Config) any { return &c.Admin.Granularity }},
		{"log.level", live, func(c *Config) any { return &c.Log.Level }},
		{"log.format", restart, func(c *Config) any { return &c.Log.Format }},
	}

	clusterKeys = []key[Cluster]{
		{"bootstrap", restart, func(c *Cluster) any { return &c.Bootstrap }},
		{"client_id", restart, func(c *Cluster) any { return &c.ClientID }},
		{"rack", restart, func(c *Cluster) any { return &c.Rack }},
		{"tls.enabled", restart, func(c *Cluster) any { return &c.TLS.Enabled }},
		{"tls.ca_file", restart, func(c *Cluster) any { return &c.TLS.CAFile }},
		{"tls.cert_file", restart, func(c *Cluster) any { return &c.TLS.CertFile }},
		{"tls.key_file", restart, func(c *Cluster) any { return &c.TLS.KeyFile }},
		{"tls.server_name", restart, func(c *Cluster) any { return &c.TLS.ServerName }},
		{"tls.insecure_skip_verify", restart, func(c *Cluster) any { return &c.TLS.InsecureSkipVerify }},
		{"sasl.mechanism", restart, func(c *Cluster) any { return &c.SASL.Mechanism }},
		{"sasl.username", restart, func(c *Cluster) any { return &c.SASL.Username }},
		{"sasl.password", restart, func(c *Cluster) any { return &c.SASL.Password }},
		{"sasl.password_file", restart, func(c *Cluster) any { return &c.SASL.PasswordFile }},
		{"sasl.oauthbearer.token_url", restart, func(c *Cluster) any { return (*address)(&c.SASL.OAuthBearer.TokenURL) }},
		{"sasl.oauthbearer.client_id", restart, func(c *Cluster) any { return &c.SASL.OAuthBearer.ClientID }},
		{"sasl.oauthbearer.client_secret", restart, func(c *Cluster) any { return &c.SASL.OAuthBearer.ClientSecret }},
		{"sasl.oauthbearer.client_secret_file", restart, func(c *Cluster) any { return &c.SASL.OAuthBearer.ClientSecretFile }},
		{"sasl.oauthbearer.scopes", restart, func(c *Cluster) any { return &c.SASL.OAuthBearer.Scopes }},
		{"sasl.aws.profile", restart, func(c *Cluster) any { return &c.SASL.AWS.Profile }},
		{"sasl.aws.role", restart, func(c *Cluster) any { return &c.SASL.AWS.Role }},
		{"sasl.aws.region", restart, func(c *Cluster) any { return &c.SASL.AWS.Region }},
		{"sasl.kerberos.config_file", restart, func(c *Cluster) any { return &c.SASL.Kerberos.ConfigFile }},
		{"sasl.kerberos.keytab_file", restart, func(c *Cluster) any { return &c.SASL.Kerberos.KeytabFile }},
		{"sasl.kerberos.principal", restart, func(c *Cluster) any { return &c.SASL.Kerberos.Principal }},
		{"sasl.kerberos.service", restart, func(c *Cluster) any { return &c.SASL.Kerberos.Service }},
	}

	// A flow is known by its from and to: another pair is another flow.
	flowKeys = []key[Flow]{
		{"from", restart, func(f *Flow) any { return &f.From }},
		{"to", restart, func(f *Flow) any { return &f.To }},
		{"topics", live, func(f *Flow) any { return &f.Topics }},
		{"exclude_topics", live, func(f *Flow) any { return &f.ExcludeTopics }},
		{"groups", live, func(f *Flow) any { return &f.Groups }},
		{"exclude_groups", live, func(f *Flow) any { return &f.ExcludeGroups }},
		{"naming.policy", restart, func(f *Flow) any { return &f.Naming.Policy }},
		{"naming.separator", restart, func(f *Flow) any { return &f.Naming.Separator }},
		{"start", restart, func(f *Flow) any { return &f.Start }},
		{"isolation", restart, func(f *Flow) any { return &f.Isolation }},
		{"refresh", live, func(f *Flow) any { return &f.Refresh }},
		{"commit_interval", live, func(f *Flow) any { return &f.CommitInterval }},
		{"lanes", restart, func(f *Flow) any { return &f.Lanes }},
		{"memory", restart, func(f *Flow) any { return (*byteSize)(&f.Memory) }},
		{"on_data_loss", live, func(f *Flow) any { return &f.OnDataLoss }},
		{"on_recreated", live, func(f *Flow) any { return &f.OnRecreated }},
		{"on_lost_positions", live, func(f *Flow) any { return &f.OnLostPositions }},
		{"resume", restart, func(f *Flow) any { return &f.Resume }},
		{"grace", live, func(f *Flow) any { return &f.Grace }},
		{"create.replication_factor", live, func(f *Flow) any { return &f.Create.ReplicationFactor }},
		{"create.configs", live, func(f *Flow) any { return &f.Create.Configs }},
		{"positions.topic", restart, func(f *Flow) any { return &f.Positions.Topic }},
		{"positions.connector", restart, func(f *Flow) any { return &f.Positions.Connector }},
		{"offset_syncs.location", restart, func(f *Flow) any { return &f.OffsetSyncs.Location }},
		{"checkpoints.enabled", live, func(f *Flow) any { return &f.Checkpoints.Enabled }},
		{"checkpoints.interval", live, func(f *Flow) any { return &f.Checkpoints.Interval }},
		{"checkpoints.sync_groups", live, func(f *Flow) any { return &f.Checkpoints.SyncGroups }},
		{"plugins", live, func(f *Flow) any { return &f.Plugins }},
	}
)

// LiveKeys are the keys that a reload applies, without the tables of clusters and
// flows that they are in.
func LiveKeys() []string {
	return slices.Concat(liveNames(fileKeys), liveNames(clusterKeys), liveNames(flowKeys))
}

func liveNames[T any](keys []key[T]) (names []string) {
	for _, k := range keys {
		if k.live {
			names = append(names, k.name)
		}
	}
	return names
}
