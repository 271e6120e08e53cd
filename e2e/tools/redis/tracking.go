package main

// clientTracking is CLIENT TRACKING ON and OFF. Its options are those of caches that nobody here has.
func clientTracking(c *client, words []string) {
	switch {
	case len(words) > 3 && isOneOf(words[3], "bcast", "prefix", "redirect", "noloop", "optin", "optout"):
		c.fail(failure("the embedded Redis has CLIENT TRACKING without %s only", words[3]))
	case len(words) > 3 || !isOneOf(words[2], "on", "off"):
		c.fail(syntaxError)
	default:
		c.isTracking = isOneOf(words[2], "on")
		c.status("OK")
	}
}

// track notes that a client has read some keys and is to be told of their next change.
func (c *client) track(keys []string) {
	for _, key := range keys {
		if c.server.tracked[key] == nil {
			c.server.tracked[key] = map[int64]bool{}
		}
		c.server.tracked[key][c.id] = true
	}
}

// invalidate tells those who have read a key, once.
func (s *server) invalidate(key string) {
	for id := range s.tracked[key] {
		if reader := s.clients[id]; reader != nil {
			reader.invalidate("*1\r\n" + bulk(key))
		}
	}
	delete(s.tracked, key)
}

// invalidateAll tells every client with tracking that all keys have changed.
func (s *server) invalidateAll() {
	for _, reader := range s.clients {
		reader.invalidate("_\r\n")
	}
	clear(s.tracked)
}

// invalidate tells a client; RESP2 has no way to.
func (c *client) invalidate(keys string) {
	if c.isTracking && c.protocol == 3 {
		c.push(c.pushText(bulk("invalidate"), keys))
	}
}
