package main

import (
	"math"
	"slices"
	"strings"
	"time"
)

func get(c *client, words []string) { c.text(c.lookUp(words[1])) }

func mget(c *client, words []string) {
	c.array(len(words) - 1)
	for _, key := range words[1:] {
		c.text(c.lookUp(key))
	}
}

func (c *client) text(found *value) {
	if found == nil {
		c.null()
	} else {
		c.bulk(found.text)
	}
}

func strlen(c *client, words []string) {
	if found := c.lookUp(words[1]); found != nil {
		c.integer(int64(len(found.text)))
	} else {
		c.integer(0)
	}
}

func exists(c *client, words []string) {
	count := 0
	for _, key := range words[1:] {
		if c.lookUp(key) != nil {
			count++
		}
	}
	c.integer(int64(count))
}

func del(c *client, words []string) {
	count := 0
	for _, key := range words[1:] {
		if c.lookUp(key) != nil && c.server.remove(c.at(key)) {
			count++
		}
	}
	c.integer(int64(count))
}

func rename(c *client, words []string) {
	from, to := c.at(words[1]), c.at(words[2])
	found := c.server.lookUp(from)
	if found == nil {
		c.fail(failure("no such key"))
		return
	}
	if from != to {
		c.server.remove(from)
		c.server.store(to, found.text, found.expires)
	}
	c.status("OK")
}

func ttl(c *client, words []string) { c.lifetime(words[1], 1000) }

func pttl(c *client, words []string) { c.lifetime(words[1], 1) }

// lifetime answers with what is left of it, in a unit of some milliseconds.
func (c *client) lifetime(key string, unit int64) {
	found := c.lookUp(key)
	switch {
	case found == nil:
		c.integer(-2)
	case found.expires.IsZero():
		c.integer(-1)
	default:
		left := found.expires.UnixMilli() - time.Now().UnixMilli()
		c.integer((left + unit/2) / unit)
	}
}

// lrange finds no list: there are only strings.
func lrange(c *client, words []string) {
	_, isFirst := parseInteger(words[2])
	_, isLast := parseInteger(words[3])
	switch {
	case !isFirst || !isLast:
		c.fail(notInteger)
	case c.lookUp(words[1]) != nil:
		c.fail(wrongType)
	default:
		c.array(0)
	}
}

func setnx(c *client, words []string) {
	if c.lookUp(words[1]) != nil {
		c.integer(0)
		return
	}
	c.server.store(c.at(words[1]), words[2], time.Time{})
	c.integer(1)
}

func set(c *client, words []string) {
	options, problem := parseSetOptions(words[3:])
	if problem != noFault {
		c.fail(problem)
		return
	}
	before := c.lookUp(words[1])
	expires := options.expires
	if before != nil && options.keepsLifetime {
		expires = before.expires
	}
	isDone := !(options.isNew && before != nil || options.isOld && before == nil)
	if isDone {
		c.server.store(c.at(words[1]), words[2], expires)
	}
	switch {
	case options.wantsBefore:
		c.text(before)
	case isDone:
		c.status("OK")
	default:
		c.null()
	}
}

type setOptions struct {
	isNew, isOld, wantsBefore, keepsLifetime bool
	expires                                  time.Time
}

func parseSetOptions(words []string) (setOptions, fault) {
	var parsed setOptions
	unit, number := "", ""
	for at := 0; at < len(words); at++ {
		switch option := strings.ToLower(words[at]); {
		case option == "nx" && !parsed.isOld:
			parsed.isNew = true
		case option == "xx" && !parsed.isNew:
			parsed.isOld = true
		case option == "get":
			parsed.wantsBefore = true
		case option == "keepttl" && unit == "":
			parsed.keepsLifetime = true
		case isOneOf(option, "ex", "px", "exat", "pxat") && (unit == "" || unit == option) && !parsed.keepsLifetime && at+1 < len(words):
			at++
			unit, number = option, words[at]
		default:
			return parsed, syntaxError
		}
	}
	if unit == "" {
		return parsed, noFault
	}
	var problem fault
	parsed.expires, problem = parseExpiry(unit, number)
	return parsed, problem
}

// parseExpiry reads a time from now or, with a unit that ends with "at", since 1970.
func parseExpiry(unit, number string) (time.Time, fault) {
	badExpiry := failure("invalid expire time in 'set' command")
	amount, isNumber := parseInteger(number)
	if !isNumber {
		return time.Time{}, notInteger
	}
	if strings.HasPrefix(unit, "e") {
		if amount > math.MaxInt64/1000 {
			return time.Time{}, badExpiry
		}
		amount *= 1000
	}
	from := time.Now().UnixMilli()
	if strings.HasSuffix(unit, "at") {
		from = 0
	}
	if amount <= 0 || amount > math.MaxInt64-from {
		return time.Time{}, badExpiry
	}
	return time.UnixMilli(from + amount), noFault
}

func isOneOf(word string, names ...string) bool {
	return slices.Contains(names, strings.ToLower(word))
}
