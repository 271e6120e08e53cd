// Command argocd-oracle answers questions about Argo CD's rules with Argo CD's own functions: a JSON object per line in, its
// answer as JSON per line out, in the same order.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/sirupsen/logrus"
)

// answerers has the function that answers each kind of question.
var answerers = map[string]func(json.RawMessage) (any, error){
	"cached":      answer(cached),
	"cluster":     answer(cluster),
	"destination": answer(destination),
	"glob":        answer(globMatches),
	"globals":     answer(globals),
	"impersonate": answer(impersonate),
	"info":        answer(clusterInfo),
	"json":        answer(normalJSON),
	"list":        answer(list),
	"repository":  answer(normalRepository),
	"same":        answer(sameRepository),
	"rights":      answer(rights),
	"source":      answer(source),
	"specs":       answer(sameSpecs),
	"tracking":    answer(tracking),
	"virtual":     answer(virtual),
	"windows":     answer(windows),
	"windowsAt":   answer(windowsAt),
}

// question is what every line has; the rest depends on the kind.
type question struct {
	Kind string          `json:"kind"`
	Of   json.RawMessage `json:"of"`
}

// failure is the answer to a question that Argo CD answers with an error.
type failure struct {
	Error string `json:"error"`
}

func answer[Q any](function func(Q) (any, error)) func(json.RawMessage) (any, error) {
	return func(raw json.RawMessage) (any, error) {
		var of Q
		if err := json.Unmarshal(raw, &of); err != nil {
			return nil, fmt.Errorf("no such question: %w", err)
		}
		return function(of)
	}
}

func reply(line []byte) (result any) {
	// Argo CD's globs panic for some texts.
	defer func() {
		if trouble := recover(); trouble != nil {
			result = failure{fmt.Sprintf("panic: %v", trouble)}
		}
	}()
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return failure{err.Error()}
	}
	function, ok := answerers[asked.Kind]
	if !ok {
		return failure{"no such kind of question: " + asked.Kind}
	}
	result, err := function(asked.Of)
	if err != nil {
		return failure{err.Error()}
	}
	return result
}

func main() {
	logrus.SetOutput(io.Discard)
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			if err := encoder.Encode(reply(line)); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		if in.Buffered() == 0 || err != nil {
			if err := out.Flush(); err != nil {
				os.Exit(1)
			}
		}
		if err != nil {
			return
		}
	}
}
