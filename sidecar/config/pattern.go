package config

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Around a pattern's source, so that it matches whole names like Java's
// Pattern.matches.
const (
	patternOpen  = `\A(?:`
	patternClose = `)\z`
)

// Pattern compiles a regular expression that matches whole names of topics or groups. It
// refuses what Java and Go read differently, for patterns come from
// MirrorMaker's properties.
func Pattern(source string) (*regexp.Regexp, error) {
	if source == "" {
		return nil, errors.New("an empty pattern matches nothing")
	}
	if _, err := regexp.Compile(source); err != nil { // alone: a)|(b must not close our group
		return nil, describeSyntax(err)
	}
	if err := sameInJava(source); err != nil {
		return nil, err
	}
	re, err := regexp.Compile(patternOpen + source + patternClose)
	if err != nil { // a \Q left open quotes our closing parenthesis
		re, err = regexp.Compile(patternOpen + source + `\E` + patternClose)
	}
	if err != nil {
		return nil, describeSyntax(err)
	}
	return re, nil
}

// PatternText is the source of a pattern that Pattern compiled, for messages.
func PatternText(re *regexp.Regexp) string {
	return strings.TrimSuffix(strings.TrimPrefix(re.String(), patternOpen), patternClose)
}

// Literal is the one name that a pattern matches, if it has no metacharacters
// but escaped ones.
func Literal(re *regexp.Regexp) (name string, ok bool) {
	tree, err := syntax.Parse(PatternText(re), syntax.Perl)
	if err != nil || tree.Op != syntax.OpLiteral || tree.Flags&syntax.FoldCase != 0 {
		return "", false
	}
	return string(tree.Rune), true
}

func describeSyntax(err error) error {
	var bad *syntax.Error
	if !errors.As(err, &bad) {
		return err
	}
	text := bad.Code.String()
	if bad.Expr != "" {
		text += " `" + bad.Expr + "`"
	}
	switch {
	case strings.HasPrefix(bad.Expr, "(?"):
		text += " (there are no lookarounds; the list of what is excluded can say what must not match)"
	case bad.Code == syntax.ErrInvalidRepeatOp:
		text += " (there are no possessive quantifiers)"
	case bad.Code == syntax.ErrMissingRepeatArgument:
		text += " (a pattern is a regular expression, not a glob: write .* for anything)"
	}
	return errors.New(text)
}

// sameInJava refuses the two things inside a character class that are valid in
// both languages and mean something else in each.
func sameInJava(source string) error {
	class := false
	for i := 0; i < len(source); i++ {
		rest := source[i:]
		switch {
		case strings.HasPrefix(rest, `\Q`):
			end := strings.Index(rest, `\E`)
			if end < 0 {
				return nil
			}
			i += end + 1
		case rest[0] == '\\':
			i++
		case class && strings.HasPrefix(rest, "&&"):
			return errors.New("&& in a character class is an intersection in Java only: write the characters out")
		case class && rest[0] == '[':
			return errors.New("[ in a character class is a union in Java only: escape it, or write the characters out")
		case rest[0] == '[':
			class = true
			i += len("[") - 1
			if strings.HasPrefix(rest, "[^]") {
				i += 2
			} else if strings.HasPrefix(rest, "[]") {
				i++
			}
		case rest[0] == ']':
			class = false
		}
	}
	return nil
}
