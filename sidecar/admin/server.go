// Package admin serves a running mirror's health, status and metrics over
// HTTP, and says where its consumer groups would go on. It changes nothing itself; a
// reload of the config can be asked for.
package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"mirror/sidecar/config"
	"mirror/sidecar/metrics"
	"mirror/sidecar/status"
)

const (
	requestTimeout  = 5 * time.Second  // to send a request
	answerTimeout   = 30 * time.Second // to take an answer, a large /status too
	idleTimeout     = time.Minute
	shutdownTimeout = 5 * time.Second // for requests that are being answered
)

// Server answers on one address.
type Server struct {
	listener net.Listener
	http     http.Server
}

// Answers is where the server has its answers from. All may be called by several
// goroutines at a time.
type Answers struct {
	Status    func() status.Report
	Reload    Reload
	Translate Translate
	Lag       Lag
}

// Listen opens the config's address and makes a server. Run or Close must follow.
func Listen(c config.Admin, answers Answers, log *slog.Logger) (*Server, error) {
	l, err := net.Listen("tcp", c.Listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf(`admin.listen: %w; is another mirror running? Choose another port, or "" for no admin server`, err)
	case err != nil:
		return nil, fmt.Errorf("admin.listen = %q: %w", c.Listen, err)
	}
	return &Server{listener: l, http: http.Server{
		Handler:           handler(answers, metrics.NewRegistry(answers.Status, c.Granularity)),
		ReadHeaderTimeout: requestTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // clients that hang up, for the most part
	}}, nil
}

// Addr is the address that is listened on, with the real port for port 0.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close frees the address of a server that was never Run.
func (s *Server) Close() error { return s.listener.Close() }

// Run answers until ctx ends, then lets the requests that are being answered
// finish, for five seconds at most, and returns nil.
func (s *Server) Run(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("admin server on %s: %w", s.Addr(), err)
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if s.http.Shutdown(limit) != nil {
		s.http.Close()
	}
	<-served
	return nil
}
