package main

import "strings"

// matches tells whether a text is as a pattern wants it: ? is any byte, * any bytes, [abc], [a-c] and [^a] are one byte of a set,
// and a backslash takes the meaning from the byte after it.
func matches(pattern, text string) bool {
	at, star, tried := 0, -1, 0
	for done := 0; done < len(text); {
		if at < len(pattern) && pattern[at] == '*' {
			star, tried = at, done
			at++
			continue
		}
		if at < len(pattern) {
			if size, isMatch := matchesByte(pattern[at:], text[done]); isMatch {
				at += size
				done++
				continue
			}
		}
		if star < 0 {
			return false
		}
		// The last star takes one byte more.
		tried++
		at, done = star+1, tried
	}
	return strings.Trim(pattern[at:], "*") == ""
}

// matchesByte compares the beginning of a pattern with one byte, and returns the size of that beginning.
func matchesByte(pattern string, b byte) (size int, isMatch bool) {
	switch {
	case pattern[0] == '?':
		return 1, true
	case pattern[0] == '[':
		return matchesSet(pattern, b)
	case pattern[0] == '\\' && len(pattern) > 1:
		return 2, pattern[1] == b
	default:
		return 1, pattern[0] == b
	}
}

// matchesSet compares a set at the beginning of a pattern; it may end with the pattern.
func matchesSet(pattern string, b byte) (size int, isMatch bool) {
	at := 1
	isNot := at < len(pattern) && pattern[at] == '^'
	if isNot {
		at++
	}
	for at < len(pattern) && pattern[at] != ']' {
		rest := pattern[at:]
		switch {
		case rest[0] == '\\' && len(rest) > 1:
			isMatch = isMatch || rest[1] == b
			at += 2
		case len(rest) > 2 && rest[1] == '-':
			isMatch = isMatch || min(rest[0], rest[2]) <= b && b <= max(rest[0], rest[2])
			at += 3
		default:
			isMatch = isMatch || rest[0] == b
			at++
		}
	}
	return min(at+1, len(pattern)), isMatch != isNot
}
