package main

import (
	"strconv"
	"strings"
)

// version is that of the Redis whose answers these are.
const version = "8.0.6"

// defaultUser is the only one.
const defaultUser = "default"

func ping(c *client, words []string) {
	isSubscriber := c.protocol == 2 && c.subscriptions.any()
	switch {
	case len(words) > 2:
		c.fail(wrongCount("ping"))
	case isSubscriber:
		c.write(c.pushText(bulk("pong"), bulk(strings.Join(words[1:], ""))))
	case len(words) == 2:
		c.bulk(words[1])
	default:
		c.status("PONG")
	}
}

func auth(c *client, words []string) {
	user, password := defaultUser, words[1]
	switch len(words) {
	case 2:
		if c.server.password == "" {
			c.fail(failure("AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"))
			return
		}
	case 3:
		user, password = words[1], words[2]
	default:
		c.fail(syntaxError)
		return
	}
	if c.authenticate(user, password) {
		c.status("OK")
	} else {
		c.fail(wrongPassword)
	}
}

func (c *client) authenticate(user, password string) bool {
	isRight := user == defaultUser && (c.server.password == "" || c.server.password == password)
	c.isAuthenticated = c.isAuthenticated || isRight
	return isRight
}

func hello(c *client, words []string) {
	protocol := int64(c.protocol)
	if len(words) > 1 {
		number, isNumber := parseInteger(words[1])
		if !isNumber {
			c.fail(failure("Protocol version is not an integer or out of range"))
			return
		}
		if number != 2 && number != 3 {
			c.fail(fault{"NOPROTO", "unsupported protocol version"})
			return
		}
		protocol = number
	}
	var user, password, name *string
	for rest := words[min(2, len(words)):]; len(rest) > 0; {
		switch option := strings.ToLower(rest[0]); {
		case option == "auth" && len(rest) >= 3:
			user, password, rest = &rest[1], &rest[2], rest[3:]
		case option == "setname" && len(rest) >= 2:
			if !isPlain(rest[1]) {
				c.fail(badName)
				return
			}
			name, rest = &rest[1], rest[2:]
		default:
			c.fail(failure("Syntax error in HELLO option '%s'", shown(rest[0], len(rest[0]))))
			return
		}
	}
	if user != nil && !c.authenticate(*user, *password) {
		c.fail(wrongPassword)
		return
	}
	if !c.isAuthenticated {
		c.fail(fault{"NOAUTH", "HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"})
		return
	}
	if name != nil {
		c.name = *name
	}
	c.protocol = int(protocol)
	c.fields(7)
	for _, field := range []struct{ name, value string }{
		{"server", bulk("redis")},
		{"version", bulk(version)},
		{"proto", ":" + strconv.Itoa(c.protocol) + "\r\n"},
		{"id", ":" + strconv.FormatInt(c.id, 10) + "\r\n"},
		{"mode", bulk("standalone")},
		{"role", bulk("master")},
		{"modules", "*0\r\n"},
	} {
		c.write(bulk(field.name) + field.value)
	}
}

func selectDatabase(c *client, words []string) {
	number, isNumber := parseInteger(words[1])
	switch {
	case !isNumber:
		c.fail(notInteger)
	case number < 0 || number >= databases:
		c.fail(failure("DB index is out of range"))
	default:
		c.database = int(number)
		c.status("OK")
	}
}

func quit(c *client, _ []string) {
	c.status("OK")
	c.leave(endAfterOutput)
}

func reset(c *client, _ []string) {
	c.reset()
	c.status("RESET")
}

var badName = failure("Client names cannot contain spaces, newlines or special characters.")

func clientGetName(c *client, _ []string) {
	if c.name == "" {
		c.null()
	} else {
		c.bulk(c.name)
	}
}

func clientSetName(c *client, words []string) {
	if !isPlain(words[2]) {
		c.fail(badName)
		return
	}
	c.name = words[2]
	c.status("OK")
}

// clientSetInfo takes what a client says about its library. Nobody asks for it.
func clientSetInfo(c *client, words []string) {
	option := strings.ToLower(words[2])
	switch {
	case option != "lib-name" && option != "lib-ver":
		c.fail(failure("Unrecognized option '%s'", shown(words[2], len(words[2]))))
	case !isPlain(words[3]):
		c.fail(failure("%s cannot contain spaces, newlines or special characters.", words[2]))
	default:
		c.status("OK")
	}
}

// isPlain tells whether a name has only visible characters of ASCII.
func isPlain(name string) bool {
	return strings.IndexFunc(name, func(r rune) bool { return r < '!' || r > '~' }) < 0
}
