set shell := ["bash", "-euo", "pipefail", "-c"]

staticcheck := "honnef.co/go/tools/cmd/staticcheck@v0.8.2"

# the recipes
default:
    @just --list --unsorted

# one static binary, ./mirror
build:
    CGO_ENABLED=0 go build -trimpath -o mirror .

# two embedded clusters and live traffic between them
demo *args:
    go run . demo {{ args }}

# every test; those on real Kafka too, where there is Docker and the image
test *args:
    go test -count=1 -timeout 30m {{ args }} ./...

# the tests of some packages
again +packages:
    go test -count=1 -timeout 30m {{ packages }}

# every test that needs no Docker, with the race detector
race *args:
    go test -race {{ args }} $(go list ./... | grep -vE '/integration(/kafkatest|/soak)?$')

# the scenarios on real Kafka; without Docker this fails where `test` skips
integration *args:
    KAFKA_TEST_REQUIRED=1 go test -count=1 -timeout 30m {{ args }} ./integration/...

# a long round of faults on real Kafka: 20 kills of the mirror, and brokers away for so long each time
faults outage="3m":
    MIRROR_TEST_KILLS=20 MIRROR_TEST_OUTAGE={{ outage }} KAFKA_TEST_REQUIRED=1 go test -count=1 -timeout 0 -v -run TestThree ./integration

# the built-in plugin's .wasm, from its source in Rust, and the tests' guests
wasm:
    plugins/offsetsync/build.sh
    plugins/testdata/build.sh

# format, vet, staticcheck, go.mod, shell scripts, the plugin's .wasm
check: format vet tidy scripts guest

format:
    @test -z "$(gofmt -l $(git ls-files '*.go'))" || { gofmt -d $(git ls-files '*.go'); exit 1; }

# go vet and staticcheck, also of what is built for WASM alone
vet:
    go vet ./...
    go run {{ staticcheck }} ./...
    guests=$(git grep -l '^//go:build wasip1' -- '*.go' | xargs -n1 dirname | sort -u | sed 's|^|./|'); \
        GOOS=wasip1 GOARCH=wasm go vet $guests; \
        go run -exec 'env GOOS=wasip1 GOARCH=wasm' {{ staticcheck }} -checks inherit,-U1000 $guests

tidy:
    go mod tidy -diff

scripts:
    @if command -v shellcheck >/dev/null; then shellcheck .ci/run $(git ls-files '*.sh'); else echo "no shellcheck: scripts not checked"; fi

guest:
    plugins/offsetsync/build.sh --check

# each fuzz target for some seconds; goes on to the next where one finds something
fuzz seconds="10":
    @go test -run '^$' -list '^Fuzz' ./... | awk '/^Fuzz/ {t[n++] = $1} /^ok/ {for (i = 0; i < n; i++) print $2, t[i]; n = 0}' | { \
        failed=; \
        while read -r package target; do \
            echo "$package $target"; \
            go test -run '^$' -fuzz "^$target\$" -fuzztime {{ seconds }}s "$package" || failed="$failed $package $target"; \
        done; \
        [ -z "$failed" ] || { echo "found something:$failed"; exit 1; }; \
    }

# Go benchmarks
gobench *args:
    go test -run '^$' -bench . -benchmem {{ args }} ./...

# the Docker image of Kafka for the tests
image:
    integration/image/build.sh

# what mirroring costs on real Kafka, beside MirrorMaker 2 (Docker); -help lists the flags
bench *args:
    go run ./integration/bench {{ args }}

# a mirror under a mixed load on real Kafka for a long time: is what it holds flat, and the target equal? (Docker)
soak duration="1h":
    KAFKA_TEST_REQUIRED=1 go test -count=1 -timeout 0 -v -run TestSoak ./integration/soak -for {{ duration }}
