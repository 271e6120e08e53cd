package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
)

const (
	// readSize is what is read at once, and replies to it go at once.
	readSize = 16 * 1024
	// A client that has not authenticated is dropped when more than this waits for it.
	mostStrangerOutput = 16 * 1024
	// A client with subscriptions is dropped when more than this waits for it, so that it cannot fill the memory.
	mostSubscriberOutput = 32 * 1024 * 1024
)

// client is one connection. Its fields belong to whoever has the server's lock.
type client struct {
	server *server
	conn   net.Conn
	id     int64

	protocol        int
	isAuthenticated bool
	name            string
	database        int
	isTracking      bool
	subscriptions   subscriptions

	transaction *transaction // Nil outside of MULTI.
	watched     map[place]bool
	isOutdated  bool // A watched key has changed.

	output   []byte // Waits for the writer.
	inFlight int    // Bytes that the writer has taken.
	pushes   []byte // Wait for the reply to the command that this client executes.
	isDue    bool   // The writer may take the output.
	end      end
	changed  *sync.Cond // The writer waits for it.
}

// end is how a connection ends.
type end int

const (
	endNot end = iota
	endAfterOutput
	endNow
)

// read executes the commands of a client until its connection ends.
func (c *client) read() {
	in := &reader{in: bufio.NewReaderSize(c, readSize), isStranger: func() bool {
		c.server.mutex.Lock()
		defer c.server.mutex.Unlock()
		return !c.isAuthenticated
	}}
	for {
		words, err := in.next()
		c.server.mutex.Lock()
		wrong := protocolError("")
		switch {
		case errors.As(err, &wrong):
			c.fail(failure("%s", wrong))
			c.leave(endAfterOutput)
		case errors.Is(err, io.EOF):
			// The client has sent everything, and may still read.
			c.leave(endAfterOutput)
		case err != nil:
			c.leave(endNow)
		default:
			c.execute(words)
		}
		isOver := c.end != endNot
		c.server.mutex.Unlock()
		if isOver {
			return
		}
	}
}

// Read lets the replies to all commands go that were read before, and reads more.
func (c *client) Read(into []byte) (int, error) {
	c.server.mutex.Lock()
	c.flush()
	c.server.mutex.Unlock()
	size, err := c.conn.Read(into)
	c.server.mutex.Lock()
	c.isDue = false
	c.server.mutex.Unlock()
	return size, err
}

// write adds to the output.
func (c *client) write(text string) {
	if c.end != endNot {
		return
	}
	c.output = append(c.output, text...)
	waiting := len(c.output) + c.inFlight
	if waiting > mostStrangerOutput && !c.isAuthenticated || waiting > mostSubscriberOutput && c.subscriptions.any() {
		c.leave(endNow)
	}
}

// push sends what is no reply: at once, or after the reply when the client is itself executing a command.
func (c *client) push(text string) {
	if c.server.executing == c {
		c.pushes = append(c.pushes, text...)
		return
	}
	c.write(text)
	c.flush()
}

func (c *client) flush() {
	c.isDue = true
	c.changed.Signal()
}

// leave ends the connection. What others know of the client is forgotten.
func (c *client) leave(how end) {
	if c.end != endNot {
		return
	}
	c.end = how
	c.reset()
	delete(c.server.clients, c.id)
	if how == endNow {
		c.output = nil
		c.conn.Close()
	}
	c.flush()
}

// reset makes everything as in a new connection.
func (c *client) reset() {
	c.protocol, c.database, c.name = 2, 0, ""
	c.isAuthenticated, c.isTracking = c.server.password == "", false
	c.discard()
	c.subscriptions.endAll(c)
}

// writeOutput sends the output until the connection ends.
func (c *client) writeOutput() {
	c.server.mutex.Lock()
	defer c.server.mutex.Unlock()
	for {
		for c.end == endNot && !(c.isDue && len(c.output) > 0) {
			c.changed.Wait()
		}
		output := c.output
		if len(output) == 0 {
			c.conn.Close()
			return
		}
		c.output, c.inFlight, c.isDue = nil, len(output), false
		c.server.mutex.Unlock()
		_, err := c.conn.Write(output)
		c.server.mutex.Lock()
		c.inFlight = 0
		if err != nil {
			c.leave(endNow)
		}
	}
}
