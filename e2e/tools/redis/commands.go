package main

import "strings"

// command is what a client can ask for.
type command struct {
	name string // As errors show it: "client|setname" for a subcommand.
	// words is how many words it has, with its name; a negative number is the least.
	words int
	run   func(c *client, words []string)
	// reads tells the keys that it reads; nil for none.
	reads            func(words []string) []string
	isForStrangers   bool // Also before authentication.
	isForSubscribers bool // Also in RESP2 with subscriptions.
	isImmediate      bool // Also within MULTI, where others wait for EXEC.
	subcommands      map[string]*command
}

func oneKey(words []string) []string   { return words[1:2] }
func manyKeys(words []string) []string { return words[1:] }

var commands = byName(
	&command{name: "auth", words: -2, run: auth, isForStrangers: true},
	&command{name: "client", words: -2, subcommands: byName(
		&command{name: "client|getname", words: 2, run: clientGetName},
		&command{name: "client|setinfo", words: 4, run: clientSetInfo},
		&command{name: "client|setname", words: 3, run: clientSetName},
		&command{name: "client|tracking", words: -3, run: clientTracking},
	)},
	&command{name: "hello", words: -1, run: hello, isForStrangers: true},
	&command{name: "ping", words: -1, run: ping, isForSubscribers: true},
	&command{name: "quit", words: -1, run: quit, isForStrangers: true, isForSubscribers: true, isImmediate: true},
	&command{name: "reset", words: 1, run: reset, isForStrangers: true, isForSubscribers: true, isImmediate: true},
	&command{name: "select", words: 2, run: selectDatabase},

	&command{name: "del", words: -2, run: del},
	&command{name: "exists", words: -2, run: exists, reads: manyKeys},
	&command{name: "flushall", words: -1, run: flushAll},
	&command{name: "get", words: 2, run: get, reads: oneKey},
	&command{name: "lrange", words: 4, run: lrange, reads: oneKey},
	&command{name: "mget", words: -2, run: mget, reads: manyKeys},
	&command{name: "pttl", words: 2, run: pttl, reads: oneKey},
	&command{name: "rename", words: 3, run: rename},
	&command{name: "scan", words: -2, run: scan},
	&command{name: "set", words: -3, run: set},
	&command{name: "setnx", words: 3, run: setnx},
	&command{name: "strlen", words: 2, run: strlen, reads: oneKey},
	&command{name: "ttl", words: 2, run: ttl, reads: oneKey},

	&command{name: "psubscribe", words: -2, run: subscribe(patterns), isForSubscribers: true},
	&command{name: "publish", words: 3, run: publish},
	&command{name: "punsubscribe", words: -1, run: unsubscribe(patterns), isForSubscribers: true},
	&command{name: "ssubscribe", words: -2, run: subscribe(shardChannels), isForSubscribers: true},
	&command{name: "subscribe", words: -2, run: subscribe(channels), isForSubscribers: true},
	&command{name: "sunsubscribe", words: -1, run: unsubscribe(shardChannels), isForSubscribers: true},
	&command{name: "unsubscribe", words: -1, run: unsubscribe(channels), isForSubscribers: true},

	&command{name: "discard", words: 1, run: discard, isImmediate: true},
	&command{name: "exec", words: 1, run: exec, isImmediate: true},
	&command{name: "multi", words: 1, run: multi, isImmediate: true},
	&command{name: "unwatch", words: 1, run: unwatch},
	&command{name: "watch", words: -2, run: watch, isImmediate: true},
)

func byName(all ...*command) map[string]*command {
	named := map[string]*command{}
	for _, each := range all {
		named[each.name[strings.IndexByte(each.name, '|')+1:]] = each
	}
	return named
}

// find returns the command that a client asks for, and why it cannot be executed. Without a command it does not exist.
func find(words []string) (*command, fault) {
	found := commands[strings.ToLower(words[0])]
	if found == nil {
		args := ""
		for _, word := range words[1:] {
			if len(args) >= mostShown {
				break
			}
			args += "'" + shown(word, mostShown-len(args)) + "' "
		}
		return nil, failure("unknown command '%s', with args beginning with: %s", shown(words[0], mostShown), args)
	}
	if found.subcommands != nil && len(words) > 1 {
		name := found.name
		if found = found.subcommands[strings.ToLower(words[1])]; found == nil {
			return nil, failure("unknown subcommand '%s'. Try %s HELP.", shown(words[1], mostShown), strings.ToUpper(name))
		}
	}
	if len(words) < -found.words || found.words > 0 && len(words) != found.words {
		return found, wrongCount(found.name)
	}
	return found, noFault
}

func wrongCount(name string) fault {
	return failure("wrong number of arguments for '%s' command", name)
}

// mostShown is how much of a client's words an error shows.
const mostShown = 128

// shown is the part of a word that C would print.
func shown(word string, most int) string {
	text, _, _ := strings.Cut(word, "\x00")
	return text[:min(len(text), most)]
}
