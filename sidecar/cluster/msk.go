package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/twmb/franz-go/pkg/sasl"

	"mirror/sidecar/config"
)

// mskIAM is the mechanism AWS_MSK_IAM: the client sends a presigned request (Signature Version 4)
// as JSON. The client of the Kafka library has it too, but takes the region from the broker's name
// only, which private names do not tell.
type mskIAM struct {
	cfg config.AWS

	mu     sync.Mutex
	loaded *aws.Config // nil before the first use
}

func (*mskIAM) Name() string { return "AWS_MSK_IAM" }

// Authenticate begins a session with the broker at addr. Credentials come from where every AWS tool
// takes them; they are kept and renewed as their source says.
func (m *mskIAM) Authenticate(ctx context.Context, addr string) (sasl.Session, []byte, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := m.load(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("load the aws config: %w", err)
	}
	region := m.region(host, cfg.Region)
	if region == "" {
		return nil, nil, fmt.Errorf("the name %s tells no aws region: set sasl.aws.region", host)
	}
	creds, err := cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("get aws credentials: %w", err)
	}
	first, err := mskPayload(ctx, creds, host, region, time.Now())
	return mskSession{}, first, err
}

// load reads the AWS config once.
func (m *mskIAM) load(ctx context.Context) (aws.Config, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.loaded != nil {
		return *m.loaded, nil
	}
	var options []func(*awsconfig.LoadOptions) error
	if m.cfg.Profile != "" {
		options = append(options, awsconfig.WithSharedConfigProfile(m.cfg.Profile))
	}
	if m.cfg.Region != "" {
		options = append(options, awsconfig.WithRegion(m.cfg.Region))
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Config{}, err
	}
	if m.cfg.Role != "" {
		cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), m.cfg.Role))
	}
	m.loaded = &cfg
	return cfg, nil
}

// region is the configured one, or that in the broker's name, or that of the AWS config.
func (m *mskIAM) region(host, fallback string) string {
	if m.cfg.Region != "" {
		return m.cfg.Region
	}
	// b-1.name.id.c2.kafka.us-east-1.amazonaws.com,
	// boot-id.c1.kafka-serverless.us-east-1.amazonaws.com, ….kafka.us-east-1.vpce.amazonaws.com
	labels := strings.Split(host, ".")
	for i, label := range labels[:len(labels)-1] {
		if (label == "kafka" || label == "kafka-serverless") && strings.Contains(host, ".amazonaws.") {
			return labels[i+1]
		}
	}
	return fallback
}

// mskPayload returns the client's message, whose form is that of aws-msk-iam-auth: the parameters
// of the presigned request, their names in lower case, with host, version and user agent.
func mskPayload(ctx context.Context, creds aws.Credentials, host, region string, now time.Time) ([]byte, error) {
	const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // SHA-256 of no body
	query := url.Values{"Action": {"kafka-cluster:Connect"}, "X-Amz-Expires": {"900"}}
	req, err := http.NewRequest(http.MethodGet, "https://"+host+"/?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	signed, _, err := v4.NewSigner().PresignHTTP(ctx, creds, req, emptyHash, "kafka-cluster", region, now)
	if err != nil {
		return nil, fmt.Errorf("sign the request to %s: %w", host, err)
	}
	u, err := url.Parse(signed)
	if err != nil {
		return nil, err
	}
	payload := map[string]string{"version": "2020_10_22", "host": host, "user-agent": "mirror"}
	for name, values := range u.Query() {
		payload[strings.ToLower(name)] = values[0]
	}
	return json.Marshal(payload)
}

// mskSession ends with the broker's first answer, which names the request for AWS's support.
type mskSession struct{}

func (mskSession) Challenge(answer []byte) (done bool, next []byte, err error) {
	if len(answer) == 0 {
		return false, nil, errors.New("the broker's answer is empty")
	}
	return true, nil, nil
}
