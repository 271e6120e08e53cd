package main

import (
	"errors"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"
)

const databases = 16

// So long new clients wait where the process has as many open files as it may.
const acceptPause = 50 * time.Millisecond

// server is everything that clients share.
type server struct {
	password string

	mutex       sync.Mutex
	clients     map[int64]*client
	lastID      int64
	executing   *client // Whose command is being executed.
	keys        [databases]map[string]*value
	watchers    map[place]map[*client]bool
	tracked     map[string]map[int64]bool // Clients that want to know of the next change, by key in whatever database.
	subscribers subscribers
}

func newServer(password string) *server {
	s := &server{
		password:    password,
		clients:     map[int64]*client{},
		watchers:    map[place]map[*client]bool{},
		tracked:     map[string]map[int64]bool{},
		subscribers: newSubscribers(),
	}
	for at := range s.keys {
		s.keys[at] = map[string]*value{}
	}
	return s
}

func (s *server) serve(listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			time.Sleep(acceptPause)
			continue
		}
		if err != nil {
			return err
		}
		s.mutex.Lock()
		s.lastID++
		c := &client{
			server: s, conn: conn, id: s.lastID, changed: sync.NewCond(&s.mutex), subscriptions: newSubscriptions(), watched: map[place]bool{},
		}
		c.reset()
		s.clients[c.id] = c
		s.mutex.Unlock()
		go c.writeOutput()
		go c.read()
	}
}

// execute does what Redis does with a command, in its order: does it exist, may this client use it now, must it wait for EXEC?
func (c *client) execute(words []string) {
	command, problem := find(words)
	if command == nil && isOfBrowser(words[0]) {
		c.leave(endNow)
		return
	}
	if problem == noFault {
		problem = c.objection(command)
	}
	switch {
	case problem != noFault:
		c.refuse(command, problem)
	case c.transaction != nil && !command.isImmediate:
		c.transaction.add(queued{command, words})
		c.status("QUEUED")
	default:
		c.server.executing = c
		c.call(command, words)
		c.server.executing = nil
		c.write(string(c.pushes))
		c.pushes = nil
	}
}

// call executes a command; also within EXEC.
func (c *client) call(command *command, words []string) {
	command.run(c, words)
	if c.isTracking && command.reads != nil {
		c.track(command.reads(words))
	}
}

// objection is why a client may not use a command now.
func (c *client) objection(command *command) fault {
	if !c.isAuthenticated && !command.isForStrangers {
		return fault{"NOAUTH", "Authentication required."}
	}
	if c.protocol == 2 && c.subscriptions.any() && !command.isForSubscribers {
		return failure("Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context", command.name)
	}
	return noFault
}

// refuse tells that a command is not executed. It spoils a transaction, and EXEC ends it.
func (c *client) refuse(command *command, problem fault) {
	if c.transaction != nil {
		c.transaction.isSpoilt = true
	}
	if command != nil && command.name == "exec" {
		c.discard()
		text := problem.text
		if problem.code != "ERR" {
			text = problem.code + " " + text
		}
		problem = fault{"EXECABORT", "Transaction discarded because of: " + text}
	}
	c.fail(problem)
}

// isOfBrowser tells the beginning of a line that a page makes a browser send, to have something executed.
func isOfBrowser(word string) bool {
	name := strings.ToLower(word)
	return name == "post" || name == "host:"
}
