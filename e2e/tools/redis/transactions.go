package main

// transaction is what waits for EXEC.
type transaction struct {
	queue    []queued
	isSpoilt bool // A command could not be queued.
}

type queued struct {
	command *command
	words   []string
}

func (t *transaction) add(next queued) { t.queue = append(t.queue, next) }

func multi(c *client, _ []string) {
	if c.transaction != nil {
		c.fail(failure("MULTI calls can not be nested"))
		return
	}
	c.transaction = &transaction{}
	c.status("OK")
}

func exec(c *client, _ []string) {
	transaction := c.transaction
	if transaction == nil {
		c.fail(failure("EXEC without MULTI"))
		return
	}
	// A watched key may have expired without anybody noticing.
	for at := range c.watched {
		c.server.lookUp(at)
	}
	isOutdated := c.isOutdated
	c.discard()
	switch {
	case transaction.isSpoilt:
		c.fail(fault{"EXECABORT", "Transaction discarded because of previous errors."})
	case isOutdated:
		c.nullArray()
	default:
		c.array(len(transaction.queue))
		for _, next := range transaction.queue {
			c.call(next.command, next.words)
		}
	}
}

func discard(c *client, _ []string) {
	if c.transaction == nil {
		c.fail(failure("DISCARD without MULTI"))
		return
	}
	c.discard()
	c.status("OK")
}

// discard ends a transaction and what it watches.
func (c *client) discard() {
	c.transaction = nil
	c.unwatch()
}

func watch(c *client, words []string) {
	if c.transaction != nil {
		c.fail(failure("WATCH inside MULTI is not allowed"))
		return
	}
	for _, key := range words[1:] {
		at := c.at(key)
		// A key that has expired already is not one that changes.
		c.server.lookUp(at)
		if c.server.watchers[at] == nil {
			c.server.watchers[at] = map[*client]bool{}
		}
		c.server.watchers[at][c] = true
		c.watched[at] = true
	}
	c.status("OK")
}

func unwatch(c *client, _ []string) {
	c.unwatch()
	c.status("OK")
}

func (c *client) unwatch() {
	for at := range c.watched {
		if delete(c.server.watchers[at], c); len(c.server.watchers[at]) == 0 {
			delete(c.server.watchers, at)
		}
	}
	clear(c.watched)
	c.isOutdated = false
}
