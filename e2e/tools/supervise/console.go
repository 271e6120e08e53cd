package main

import (
	"fmt"
	"io"
	"os"

	"github.com/creack/pty"
)

// console is what the command reads and writes.
type console struct {
	// files are the command's standard input, output and error.
	files []uintptr
	// theirs is what the command gets as standard input, open until it has been started.
	theirs *os.File
	// master is this process's side of a terminal; nil without one.
	master *os.File
	shown  chan struct{}
}

func newConsole(mode string) (*console, error) {
	switch mode {
	case "-input":
		return &console{files: []uintptr{4, 1, 2}}, nil
	case "-terminal":
		master, slave, err := pty.Open()
		if err != nil {
			return nil, err
		}
		fd := slave.Fd()
		return &console{files: []uintptr{fd, fd, fd}, theirs: slave, master: master, shown: make(chan struct{})}, nil
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	return &console{files: []uintptr{null.Fd(), 1, 2}, theirs: null}, nil
}

// connect joins the terminal of a command that has been started with whoever asked for it.
func (c *console) connect() {
	if c.master == nil {
		return
	}
	// When the command and all its descendants have closed it, reading the other side ends.
	_ = c.theirs.Close()
	go func() {
		_, _ = io.Copy(c.master, os.NewFile(4, "input"))
	}()
	go func() {
		_, _ = io.Copy(os.Stdout, c.master)
		// Nobody looks any more, but a command that cannot write would not end.
		_, _ = io.Copy(io.Discard, c.master)
		close(c.shown)
	}()
}

// resize sets the size of the terminal, from "ROWS COLUMNS".
func (c *console) resize(size string) {
	var rows, columns uint16
	if _, err := fmt.Sscanf(size, "%d %d", &rows, &columns); err != nil || c.master == nil {
		return
	}
	_ = pty.Setsize(c.master, &pty.Winsize{Rows: rows, Cols: columns})
}

// drain waits until everything that the command wrote has been shown.
func (c *console) drain() {
	if c.master != nil {
		<-c.shown
	}
}
