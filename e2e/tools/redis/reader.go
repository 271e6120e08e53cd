package main

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"strconv"
	"strings"
)

const (
	// longestLine is what is read of a line without finding its end.
	longestLine = 64 * 1024
	longestWord = 512 * 1024 * 1024
	// A client that has not authenticated may send only so much.
	mostStrangerWords   = 10
	longestStrangerWord = 16 * 1024
)

// protocolError ends a connection after what its client has sent.
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// reader cuts the bytes of a client into commands.
type reader struct {
	in *bufio.Reader
	// isStranger tells whether the client has still to authenticate.
	isStranger func() bool
}

// next reads a command: an array of strings, or a line as people type it. Its error is a protocolError or one of the connection.
func (r *reader) next() ([]string, error) {
	for {
		mark, err := r.in.Peek(1)
		if err != nil {
			return nil, err
		}
		read := r.line
		if mark[0] == '*' {
			read = r.array
		}
		words, err := read()
		if err != nil || len(words) > 0 {
			return words, err
		}
	}
}

func (r *reader) array() ([]string, error) {
	count, err := r.length("too big mbulk count string")
	if err != nil {
		return nil, err
	}
	words, isNumber := parseInteger(count)
	switch {
	case !isNumber || words > math.MaxInt32:
		return nil, protocolError("invalid multibulk length")
	case words > mostStrangerWords && r.isStranger():
		return nil, protocolError("unauthenticated multibulk length")
	}
	var command []string
	for ; words > 0; words-- {
		word, err := r.word()
		if err != nil {
			return nil, err
		}
		command = append(command, word)
	}
	return command, nil
}

func (r *reader) word() (string, error) {
	mark, err := r.in.Peek(1)
	if err != nil {
		return "", err
	}
	first := string(mark)
	size, err := r.length("too big bulk count string")
	if err != nil {
		return "", err
	}
	if first != "$" {
		return "", protocolError("expected '$', got '" + first + "'")
	}
	length, isNumber := parseInteger(size)
	switch {
	case !isNumber || length < 0 || length > longestWord:
		return "", protocolError("invalid bulk length")
	case length > longestStrangerWord && r.isStranger():
		return "", protocolError("unauthenticated bulk length")
	}
	// It grows with what arrives, whatever the length says.
	var word bytes.Buffer
	if _, err := io.CopyN(&word, r.in, length); err != nil {
		return "", err
	}
	// Redis does not look at what stands for the line end.
	_, err = r.in.Discard(2)
	return word.String(), err
}

// length reads a mark and the number after it, up to a CR and the byte behind that.
func (r *reader) length(tooLong protocolError) (string, error) {
	line, err := r.upTo('\r', tooLong)
	if err != nil {
		return "", err
	}
	_, err = r.in.Discard(1)
	if line == "" {
		return "", err
	}
	return line[1:], err
}

func (r *reader) line() ([]string, error) {
	line, err := r.upTo('\n', "too big inline request")
	if err != nil {
		return nil, err
	}
	words, isComplete := splitLine(strings.TrimSuffix(line, "\r"))
	if !isComplete {
		return nil, protocolError("unbalanced quotes in request")
	}
	return words, nil
}

// upTo reads to an end mark and drops that. A NUL hides what follows, as from the string functions of C that Redis uses.
func (r *reader) upTo(end byte, tooLong protocolError) (string, error) {
	var line []byte
	for isHidden := false; ; {
		next, err := r.in.ReadByte()
		if err != nil {
			return "", err
		}
		if next == end && !isHidden {
			return string(line), nil
		}
		isHidden = isHidden || next == 0
		if line = append(line, next); len(line) > longestLine {
			return "", tooLong
		}
	}
}

// parseInteger reads a number as Redis writes it: without a plus sign and leading zeros.
func parseInteger(text string) (int64, bool) {
	number, err := strconv.ParseInt(text, 10, 64)
	return number, err == nil && strconv.FormatInt(number, 10) == text
}
