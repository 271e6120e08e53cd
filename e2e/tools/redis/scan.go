package main

import (
	"hash/maphash"
	"math"
	"strconv"
	"strings"
)

var seed = maphash.MakeSeed()

// scan shows keys step by step: those whose hashes follow the cursor, about as many as the client wants. So it shows each key that
// is there all the time, whatever comes and goes meanwhile.
func scan(c *client, words []string) {
	cursor, err := strconv.ParseUint(words[1], 10, 64)
	if err != nil {
		c.fail(failure("invalid cursor"))
		return
	}
	pattern, count := "*", int64(10)
	for options := words[2:]; len(options) > 0; options = options[2:] {
		switch {
		case len(options) >= 2 && isOneOf(options[0], "match"):
			pattern = options[1]
		case len(options) >= 2 && isOneOf(options[0], "count"):
			isNumber := false
			if count, isNumber = parseInteger(options[1]); !isNumber {
				c.fail(notInteger)
				return
			}
			if count < 1 {
				c.fail(syntaxError)
				return
			}
		default:
			c.fail(syntaxError)
			return
		}
	}
	keys := c.server.keys[c.database]
	last, next := uint64(math.MaxUint64), uint64(0)
	if size := uint64(len(keys)); uint64(count) < size {
		if end := cursor + math.MaxUint64/size*uint64(count); end > cursor {
			last, next = end-1, end
		}
	}
	var found []string
	for key := range keys {
		hash := maphash.String(seed, key)
		if cursor <= hash && hash <= last && c.lookUp(key) != nil && matches(pattern, key) {
			found = append(found, key)
		}
	}
	c.array(2)
	c.bulk(strconv.FormatUint(next, 10))
	c.array(len(found))
	c.write(strings.Join(bulks(found), ""))
}

func bulks(texts []string) []string {
	encoded := make([]string, len(texts))
	for at, text := range texts {
		encoded[at] = bulk(text)
	}
	return encoded
}
