package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	franzaws "github.com/twmb/franz-go/pkg/sasl/aws"

	"mirror/sidecar/config"
)

// payload decodes a client's message.
func payload(t *testing.T, b []byte) map[string]string {
	t.Helper()
	var m map[string]string
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return m
}

// TestMSKPayload holds the message to that of franz-go, which real clusters accept: same signature
// at the same time.
func TestMSKPayload(t *testing.T) {
	const host, region = "b-1.name.abcdef.c2.kafka.eu-west-1.amazonaws.com", "eu-west-1"
	for _, token := range []string{"", "session+token/with=signs"} {
		franz := franzaws.Auth{AccessKey: "AKID", SecretKey: "SECRET", SessionToken: token, UserAgent: "mirror"}.AsManagedStreamingIAMMechanism()
		_, theirs, err := franz.Authenticate(t.Context(), host+":9098")
		if err != nil {
			t.Fatal(err)
		}
		want := payload(t, theirs)
		at, err := time.Parse("20060102T150405Z", want["x-amz-date"])
		if err != nil {
			t.Fatal(err)
		}
		ours, err := mskPayload(t.Context(), aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET", SessionToken: token}, host, region, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := payload(t, ours); !maps.Equal(got, want) {
			t.Errorf("sends %v\nwant %v", got, want)
		}
		if strings.Contains(string(ours), "SECRET") {
			t.Errorf("%s tells the secret", ours)
		}
	}
}

func TestMSKRegion(t *testing.T) {
	tests := []struct{ configured, host, fallback, want string }{
		{"", "b-1.name.abcdef.c2.kafka.us-east-1.amazonaws.com", "eu-west-1", "us-east-1"},
		{"", "boot-abcdef.c1.kafka-serverless.us-gov-west-1.amazonaws.com", "", "us-gov-west-1"},
		{"", "b-1.name.abcdef.c2.kafka.cn-north-1.amazonaws.com.cn", "", "cn-north-1"},
		{"", "vpce-1.kafka.us-east-1.vpce.amazonaws.com", "", "us-east-1"},
		{"", "kafka.internal", "eu-west-1", "eu-west-1"},
		{"", "kafka", "", ""},
		{"ap-south-1", "b-1.name.abcdef.c2.kafka.us-east-1.amazonaws.com", "eu-west-1", "ap-south-1"},
	}
	for _, tt := range tests {
		m := &mskIAM{cfg: config.AWS{Region: tt.configured}}
		if got := m.region(tt.host, tt.fallback); got != tt.want {
			t.Errorf("%s, configured %q, else %q: %q, want %q", tt.host, tt.configured, tt.fallback, got, tt.want)
		}
	}
}

// awsFiles puts a profile where the AWS SDK looks, and keeps it from looking elsewhere.
func awsFiles(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	credentials, cfg := filepath.Join(dir, "credentials"), filepath.Join(dir, "config")
	write(t, credentials, "[mirror]\naws_access_key_id = AKPROFILE\naws_secret_access_key = SECRET\n")
	write(t, cfg, "[profile mirror]\nregion = eu-central-1\n")
	for k, v := range map[string]string{
		"AWS_SHARED_CREDENTIALS_FILE": credentials, "AWS_CONFIG_FILE": cfg, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "",
	} {
		t.Setenv(k, v)
	}
}

func mskCluster(t *testing.T, cfg config.AWS) *Cluster {
	return open(t, fake(t), func(c *config.Cluster) { c.SASL = config.SASL{Mechanism: config.AWSMSKIAM, AWS: cfg} })
}

func TestMSKProfile(t *testing.T) {
	awsFiles(t)
	mechanism, _ := mskCluster(t, config.AWS{Profile: "mirror"}).SASL(t.Context())
	if mechanism.Name() != "AWS_MSK_IAM" {
		t.Errorf("the mechanism is %s", mechanism.Name())
	}
	session, first, err := mechanism.Authenticate(t.Context(), "kafka.internal:9098")
	if err != nil {
		t.Fatal(err)
	}
	got := payload(t, first)
	if date := got["x-amz-date"][:8]; got["x-amz-credential"] != "AKPROFILE/"+date+"/eu-central-1/kafka-cluster/aws4_request" || got["host"] != "kafka.internal" {
		t.Errorf("sends %v", got)
	}
	if done, _, err := session.Challenge([]byte(`{"version": "2020_10_22", "request-id": "1"}`)); !done || err != nil {
		t.Errorf("after the answer: %t, %v", done, err)
	}
	if done, _, err := session.Challenge(nil); done || err == nil {
		t.Error("content with an empty answer")
	}
}

func TestMSKRole(t *testing.T) {
	awsFiles(t)
	const role = "arn:aws:iam::123456789012:role/mirror"
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		if action, arn := r.FormValue("Action"), r.FormValue("RoleArn"); action != "AssumeRole" || arn != role || !strings.Contains(r.Header.Get("Authorization"), "AKPROFILE") {
			t.Errorf("action %q, role %q, by %q", action, arn, r.Header.Get("Authorization"))
		}
		fmt.Fprintf(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
			<AccessKeyId>AKROLE</AccessKeyId><SecretAccessKey>SECRET</SecretAccessKey><SessionToken>TOKEN</SessionToken><Expiration>%s</Expiration>
			</Credentials></AssumeRoleResult></AssumeRoleResponse>`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	defer server.Close()
	t.Setenv("AWS_ENDPOINT_URL_STS", server.URL)
	mechanism, _ := mskCluster(t, config.AWS{Profile: "mirror", Role: role, Region: "ap-south-1"}).SASL(t.Context())
	for range 2 {
		_, first, err := mechanism.Authenticate(t.Context(), "kafka.internal:9098")
		if err != nil {
			t.Fatal(err)
		}
		if got := payload(t, first); !strings.HasPrefix(got["x-amz-credential"], "AKROLE/") || !strings.Contains(got["x-amz-credential"], "/ap-south-1/") || got["x-amz-security-token"] != "TOKEN" {
			t.Errorf("sends %v", got)
		}
	}
	if calls != 1 {
		t.Errorf("the role was assumed %d times for two sessions, want once", calls)
	}
}

func TestMSKFailures(t *testing.T) {
	awsFiles(t)
	tests := []struct {
		name string
		cfg  config.AWS
		addr string
		want []string
	}{
		{"no such profile", config.AWS{Profile: "other"}, "kafka.internal:9098", []string{"load the aws config", "other"}},
		{"no credentials", config.AWS{Region: "eu-west-1"}, "kafka.internal:9098", []string{"get aws credentials"}},
		{"no region", config.AWS{}, "kafka.internal:9098", []string{"kafka.internal", "set sasl.aws.region"}},
		{"no port", config.AWS{}, "kafka.internal", []string{"kafka.internal"}},
	}
	for _, tt := range tests {
		mechanism, _ := mskCluster(t, tt.cfg).SASL(t.Context())
		_, _, err := mechanism.Authenticate(t.Context(), tt.addr)
		if err == nil || slices.ContainsFunc(tt.want, func(w string) bool { return !strings.Contains(err.Error(), w) }) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}
