package config

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a string that no way of printing shows: not fmt with any verb, not
// encoding/json, not log/slog.
type Secret string

const redacted = "********"

// Reveal gives the secret itself.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret.
func (s Secret) String() string { return redacted }

// GoString hides the secret.
func (s Secret) GoString() string { return redacted }

// Format hides the secret from every verb: fmt would print it raw for one that
// does not fit a string, like %d.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText hides the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue hides the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
