package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand puts the environment's variables in for each ${NAME} in s; $${ stands
// for a plain ${. Its errors name variables, never their values.
func expand(s string, getenv func(string) (string, bool)) (string, error) {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(s, "${")
		if !found {
			out.WriteString(s)
			return out.String(), nil
		}
		if literal, escaped := strings.CutSuffix(before, "$"); escaped {
			out.WriteString(literal + "${")
			s = after
			continue
		}
		name, rest, closed := strings.Cut(after, "}")
		if !closed {
			return "", errors.New("${ without a }: write $${ for a plain ${")
		}
		if !envName.MatchString(name) {
			return "", fmt.Errorf("${%s} is not a variable's name: write $${ for a plain ${", name)
		}
		value, ok := getenv(name)
		if !ok {
			return "", fmt.Errorf("environment variable %s is not set", name)
		}
		out.WriteString(before + value)
		s = rest
	}
}
