package main

import (
	"fmt"
	"strconv"
	"strings"
)

// Replies to a client, in its version of the protocol.

func (c *client) status(text string) { c.write("+" + text + "\r\n") }

func (c *client) integer(number int64) { c.write(":" + strconv.FormatInt(number, 10) + "\r\n") }

func (c *client) bulk(text string) { c.write(bulk(text)) }

func (c *client) null() { c.write(c.nullText("$-1")) }

func (c *client) nullArray() { c.write(c.nullText("*-1")) }

func (c *client) array(length int) { c.write(fmt.Sprintf("*%d\r\n", length)) }

// fields begins as many names with values.
func (c *client) fields(count int) {
	if c.protocol == 3 {
		c.write(fmt.Sprintf("%%%d\r\n", count))
	} else {
		c.array(2 * count)
	}
}

func (c *client) fail(f fault) {
	text := strings.NewReplacer("\r", " ", "\n", " ").Replace(f.code + " " + f.text)
	c.write("-" + text + "\r\n")
}

// pushText encodes what is a push in RESP3 and an array before; its values are encoded already.
func (c *client) pushText(values ...string) string {
	mark := "*"
	if c.protocol == 3 {
		mark = ">"
	}
	return fmt.Sprintf("%s%d\r\n%s", mark, len(values), strings.Join(values, ""))
}

// nullText encodes nothing; before RESP3 there were several kinds of it.
func (c *client) nullText(before3 string) string {
	if c.protocol == 3 {
		return "_\r\n"
	}
	return before3 + "\r\n"
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// fault is why a command fails.
type fault struct{ code, text string }

func failure(format string, values ...any) fault { return fault{"ERR", fmt.Sprintf(format, values...)} }

var (
	noFault       = fault{}
	syntaxError   = failure("syntax error")
	notInteger    = failure("value is not an integer or out of range")
	wrongPassword = fault{"WRONGPASS", "invalid username-password pair or user is disabled."}
	wrongType     = fault{"WRONGTYPE", "Operation against a key holding the wrong kind of value"}
)
