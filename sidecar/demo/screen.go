package demo

import (
	"fmt"
	"io"
	"strings"
)

// screen shows one frame in place of the last one on a terminal, and one line
// after the other elsewhere.
type screen struct {
	out   io.Writer
	live  bool // a terminal
	lines int  // of the frame that is shown
}

// show writes a frame. Errors are ignored: a reader that has gone, as in
// "| head", must not stop the demo from cleaning up.
func (s *screen) show(text string) {
	if s.live && s.lines > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", s.lines) // up, and clear to the end
	}
	s.lines = strings.Count(text, "\n")
	io.WriteString(s.out, text)
}

// print writes text below the frame, which stays.
func (s *screen) print(text string) {
	s.lines = 0
	io.WriteString(s.out, text)
}
