package main

import "time"

// place is where a value is: in a database, under a key.
type place struct {
	database int
	key      string
}

// value is a string with a lifetime.
type value struct {
	text    string
	expires time.Time // Zero: never.
	timer   *time.Timer
}

// lookUp returns the value at a place, nil when there is none.
func (s *server) lookUp(at place) *value {
	found := s.keys[at.database][at.key]
	if found != nil && !found.expires.IsZero() && !time.Now().Before(found.expires) {
		s.remove(at)
		return nil
	}
	return found
}

// store puts a value in the place of another. It is removed when its time has come, whether somebody asks for it or not.
func (s *server) store(at place, text string, expires time.Time) {
	s.forget(at)
	added := &value{text: text, expires: expires}
	if !expires.IsZero() {
		added.timer = time.AfterFunc(time.Until(expires), func() {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			if s.keys[at.database][at.key] == added {
				s.remove(at)
			}
		})
	}
	s.keys[at.database][at.key] = added
	s.changed(at)
}

// remove tells whether there was a value.
func (s *server) remove(at place) bool {
	isRemoved := s.forget(at)
	if isRemoved {
		s.changed(at)
	}
	return isRemoved
}

func (s *server) forget(at place) bool {
	found := s.keys[at.database][at.key]
	if found == nil {
		return false
	}
	if found.timer != nil {
		found.timer.Stop()
	}
	delete(s.keys[at.database], at.key)
	return true
}

// changed tells everybody who wants to know about a key.
func (s *server) changed(at place) {
	for watcher := range s.watchers[at] {
		watcher.isOutdated = true
	}
	s.invalidate(at.key)
}

func (c *client) at(key string) place { return place{c.database, key} }

func (c *client) lookUp(key string) *value { return c.server.lookUp(c.at(key)) }

func flushAll(c *client, words []string) {
	if len(words) > 2 || len(words) == 2 && !isOneOf(words[1], "sync", "async") {
		c.fail(syntaxError)
		return
	}
	for database, keys := range c.server.keys {
		for key := range keys {
			at := place{database, key}
			c.server.forget(at)
			for watcher := range c.server.watchers[at] {
				watcher.isOutdated = true
			}
		}
	}
	c.server.invalidateAll()
	c.status("OK")
}
