package main

import (
	"maps"
	"slices"
	"strconv"
)

// kind is what a client can subscribe to.
type kind int

const (
	channels kind = iota
	patterns
	shardChannels
	kinds
)

// prefixes of the commands and confirmations.
var prefixes = [kinds]string{channels: "", patterns: "p", shardChannels: "s"}

// subscriptions are what a client has subscribed to, by name.
type subscriptions [kinds]map[string]bool

// subscribers are the clients that have subscribed to something, by name.
type subscribers [kinds]map[string]map[*client]bool

func newSubscriptions() (s subscriptions) {
	for each := range s {
		s[each] = map[string]bool{}
	}
	return s
}

func newSubscribers() (s subscribers) {
	for each := range s {
		s[each] = map[string]map[*client]bool{}
	}
	return s
}

func (s *subscriptions) any() bool { return s.count(channels)+s.count(shardChannels) > 0 }

// count is what a confirmation says: channels and patterns together, and shard channels on their own.
func (s *subscriptions) count(what kind) int {
	if what == shardChannels {
		return len(s[shardChannels])
	}
	return len(s[channels]) + len(s[patterns])
}

func (s *subscriptions) end(c *client, what kind, name string) {
	delete(s[what], name)
	all := c.server.subscribers[what]
	if delete(all[name], c); len(all[name]) == 0 {
		delete(all, name)
	}
}

func (s *subscriptions) endAll(c *client) {
	for what := range kinds {
		for name := range s[what] {
			s.end(c, what, name)
		}
	}
}

// subscribe is SUBSCRIBE and its like.
func subscribe(what kind) func(*client, []string) {
	return func(c *client, words []string) {
		all := c.server.subscribers[what]
		for _, name := range words[1:] {
			if all[name] == nil {
				all[name] = map[*client]bool{}
			}
			all[name][c] = true
			c.subscriptions[what][name] = true
			c.confirm(what, "subscribe", bulk(name))
		}
	}
}

// unsubscribe is UNSUBSCRIBE and its like.
func unsubscribe(what kind) func(*client, []string) {
	return func(c *client, words []string) {
		names := words[1:]
		if len(names) == 0 {
			names = slices.Sorted(maps.Keys(c.subscriptions[what]))
		}
		for _, name := range names {
			c.subscriptions.end(c, what, name)
			c.confirm(what, "unsubscribe", bulk(name))
		}
		if len(names) == 0 {
			c.confirm(what, "unsubscribe", c.nullText("$-1"))
		}
	}
}

func (c *client) confirm(what kind, done, name string) {
	count := ":" + strconv.Itoa(c.subscriptions.count(what)) + "\r\n"
	c.write(c.pushText(bulk(prefixes[what]+done), name, count))
}

func publish(c *client, words []string) {
	name, text := words[1], words[2]
	all := &c.server.subscribers
	count := 0
	for subscriber := range all[channels][name] {
		subscriber.push(subscriber.pushText(bulk("message"), bulk(name), bulk(text)))
		count++
	}
	for pattern, some := range all[patterns] {
		if !matches(pattern, name) {
			continue
		}
		for subscriber := range some {
			subscriber.push(subscriber.pushText(bulk("pmessage"), bulk(pattern), bulk(name), bulk(text)))
			count++
		}
	}
	c.integer(int64(count))
}
