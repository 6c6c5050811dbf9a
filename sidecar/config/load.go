package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/BurntSushi/toml"
)

// Load reads the file at path and expands it from the process's environment;
// see Parse.
func Load(path string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the config file: %w", err)
	}
	return Parse(path, data, os.LookupEnv)
}

// Parse reads a file's text. name stands for it in messages, and relative paths
// in the file are relative to name's folder. An error is an *Error, with
// everything that is wrong; it shows no secret, and strings as the file has them,
// not as getenv completes them.
func Parse(name string, data []byte, getenv func(string) (string, bool)) (*Config, error) {
	c, r := read(name, data, getenv)
	if len(r.problems) > 0 {
		return nil, &Error{r.problems}
	}
	return c, nil
}

// AdminListen is admin.listen of the file at path, whatever else is wrong there:
// a mirror that runs is asked at that address also about a file that it would
// refuse.
func AdminListen(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the config file: %w", err)
	}
	values := map[string]any{}
	if _, err := toml.Decode(string(data), &values); err != nil {
		_, err = Parse(path, data, os.LookupEnv) // which says it better
		return "", err
	}
	r := &reader{file: path, getenv: os.LookupEnv, lines: indexLines(string(data)), sources: sources{}}
	admin := readAdmin(r.table("", "", values).table("admin"))
	for _, p := range r.problems {
		if p.Key == "admin" || p.Key == "admin.listen" {
			return "", &Error{[]Problem{p}}
		}
	}
	return admin.Listen, nil
}

// read is Parse that also shows its reader.
func read(name string, data []byte, getenv func(string) (string, bool)) (*Config, *reader) {
	r := &reader{file: name, getenv: getenv, sources: sources{}}
	values := map[string]any{}
	if _, err := toml.Decode(string(data), &values); err != nil {
		p := Problem{File: name, Line: 1, Text: err.Error()}
		if bad := (toml.ParseError{}); errors.As(err, &bad) {
			// What the parser finds missing at the end it places on the line before.
			p.Line, p.Key, p.Text = max(bad.Position.Line, 1), bad.LastKey, "not TOML: "+bad.Message
			if strings.Contains(bad.LastKey, "password") || strings.Contains(bad.LastKey, "secret") {
				p.Text = "not TOML: is the value a string in quotes?" // the message could show it
			}
		}
		r.problems = []Problem{p}
		return nil, r
	}
	r.lines = indexLines(string(data))

	root := r.table("", "", values)
	c := &Config{
		File:     name,
		Digest:   sha256.Sum256(data),
		lines:    r.lines,
		sources:  r.sources,
		Admin:    readAdmin(root.table("admin")),
		Log:      readLog(root.table("log")),
		Clusters: map[string]Cluster{},
	}
	aliases, tables := root.named("clusters")
	for i, alias := range aliases {
		c.Clusters[alias] = readCluster(alias, tables[i])
	}
	flows := root.tables("flows")
	for _, t := range flows {
		c.Flows = append(c.Flows, readFlow(t, aliases))
	}
	if len(aliases) == 0 {
		root.require("clusters")
	}
	if len(flows) == 0 {
		root.require("flows")
	}
	r.checkFlows(c, flows)
	r.finish()
	return c, r
}

func readAdmin(t *table) Admin {
	listen := t.text("listen", "127.0.0.1:9464")
	if listen != "" {
		if err := checkAddress(listen, 0); err != nil {
			t.problem("listen", `%v; "" switches it off`, err)
		}
	}
	return Admin{Listen: listen, Granularity: t.choice("granularity", ByPartition, ByPartition, ByTopic, ByFlow)}
}

func readLog(t *table) Log {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	return Log{
		Level:  levels[t.choice("level", "info", "debug", "info", "warn", "error")],
		Format: t.choice("format", "auto", "auto", "text", "json"),
	}
}
