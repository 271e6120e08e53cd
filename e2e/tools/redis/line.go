package main

import "strconv"

var escapes = map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', 'b': '\b', 'a': '\a'}

// splitLine cuts a line into words. Words, or parts at their ends, may be quoted: in double quotes a backslash begins an escape,
// in single quotes it only stands before another quote. False when a quote has no end, or something follows right after one.
func splitLine(line string) ([]string, bool) {
	var words []string
	for at := 0; ; {
		for at < len(line) && isBlank(line[at]) {
			at++
		}
		if at == len(line) {
			return words, true
		}
		word, length, isComplete := splitWord(line[at:])
		if !isComplete {
			return nil, false
		}
		words = append(words, word)
		at += length
	}
}

// splitWord returns the first word of a text that begins with one, and the length of what it takes there.
func splitWord(text string) (word string, length int, isComplete bool) {
	var bytes []byte
	at := 0
	for ; at < len(text) && !isBlank(text[at]); at++ {
		quote := text[at]
		if quote != '"' && quote != '\'' {
			bytes = append(bytes, quote)
			continue
		}
		for at++; at < len(text) && text[at] != quote; {
			value, size := unescape(text[at:], quote)
			bytes = append(bytes, value)
			at += size
		}
		// With the quote ends the word.
		after := min(at+1, len(text))
		return string(bytes), after, at < len(text) && (after == len(text) || isBlank(text[after]))
	}
	return string(bytes), at, true
}

// unescape returns the first byte that a quoted text stands for, and how many bytes stand for it.
func unescape(text string, quote byte) (value byte, size int) {
	if text[0] != '\\' || len(text) == 1 {
		return text[0], 1
	}
	if quote == '\'' {
		if text[1] == quote {
			return quote, 2
		}
		return text[0], 1
	}
	if len(text) >= 4 && text[1] == 'x' {
		if code, err := strconv.ParseUint(text[2:4], 16, 8); err == nil {
			return byte(code), 4
		}
	}
	if value, isEscape := escapes[text[1]]; isEscape {
		return value, 2
	}
	return text[1], 2
}

func isBlank(b byte) bool {
	return b == ' ' || '\t' <= b && b <= '\r'
}
