// Command gopeer is the gRPC half of a peer that the interop tests play: the gRPC stack of argocd-agent's originals with
// their dial and server options, and nothing of their code. It carries messages as raw bytes and knows no schema.
//
// Standard input takes one JSON object per line ("op" says what to do, "id" names a connection, server or call), standard
// output reports one per line ("event"). The process ends when standard input does.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"
)

// command is a line of standard input; which fields count depends on Op.
type command struct {
	Op string `json:"op"`
	// The connection (dial, close), server (listen, stop) or call (call, unary, send, closeSend, cancel, finish).
	ID string `json:"id"`

	// dial, listen
	Address         string `json:"address"`
	TLS             *tlsOp `json:"tls"`
	MaxMessageBytes int    `json:"maxMessageBytes"`
	// dial: the interval of pings; listen: the shortest one that clients may use. 0 leaves grpc-go's default.
	KeepaliveMs int  `json:"keepaliveMs"`
	Gzip        bool `json:"gzip"`

	// call, unary
	Connection string            `json:"connection"`
	Method     string            `json:"method"`
	Metadata   map[string]string `json:"metadata"`

	// unary, send
	Bytes []byte `json:"bytes"`

	// finish
	Code    string `json:"code"`
	Message string `json:"message"`

	// stop
	Graceful bool `json:"graceful"`
}

// tlsOp is key material in PEM form; without it the connection is plaintext.
type tlsOp struct {
	Cert       string `json:"cert"`
	Key        string `json:"key"`
	CA         string `json:"ca"`
	ServerName string `json:"serverName"`
	MinVersion string `json:"minVersion"`
}

// report is a line of standard output.
type report struct {
	Event string `json:"event"`
	ID    string `json:"id"`

	Address string `json:"address,omitempty"`
	State   string `json:"state,omitempty"`

	Server      string              `json:"server,omitempty"`
	Method      string              `json:"method,omitempty"`
	Metadata    map[string][]string `json:"metadata,omitempty"`
	Compression string              `json:"compression,omitempty"`
	Subject     string              `json:"subject,omitempty"`
	Peer        string              `json:"peer,omitempty"`

	Bytes []byte `json:"bytes,omitempty"`

	Code    string              `json:"code,omitempty"`
	Message string              `json:"message,omitempty"`
	Trailer map[string][]string `json:"trailer,omitempty"`
}

var output struct {
	sync.Mutex
	lines *json.Encoder
}

func tell(line report) {
	output.Lock()
	defer output.Unlock()
	if err := output.lines.Encode(line); err != nil {
		os.Exit(1)
	}
}

func main() {
	output.lines = json.NewEncoder(os.Stdout)
	peer := &peer{clients: map[string]*client{}, servers: map[string]*server{}, calls: map[string]*call{}}
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	decoder := json.NewDecoder(lines)
	for {
		var line command
		if err := decoder.Decode(&line); err != nil {
			return
		}
		if err := peer.do(line); err != nil {
			tell(report{Event: "failed", ID: line.ID, Message: err.Error()})
		}
	}
}

// peer is everything that is open, by the names that standard input gave.
type peer struct {
	clients map[string]*client
	servers map[string]*server

	lock  sync.Mutex
	calls map[string]*call
	count int
}

func (p *peer) do(line command) error {
	switch line.Op {
	case "dial":
		return p.dial(line)
	case "close":
		if client := p.clients[line.ID]; client != nil {
			delete(p.clients, line.ID)
			return client.connection.Close()
		}
		return fmt.Errorf("there is no connection %q", line.ID)
	case "listen":
		return p.listen(line)
	case "stop":
		if server := p.servers[line.ID]; server != nil {
			delete(p.servers, line.ID)
			go server.stop(line.Graceful)
			return nil
		}
		return fmt.Errorf("there is no server %q", line.ID)
	case "unary", "call":
		client := p.clients[line.Connection]
		if client == nil {
			return fmt.Errorf("there is no connection %q", line.Connection)
		}
		if line.Op == "unary" {
			go client.unary(line)
			return nil
		}
		return p.open(client, line)
	}
	p.lock.Lock()
	call := p.calls[line.ID]
	p.lock.Unlock()
	if call == nil {
		// It may have ended while the line was on its way.
		return nil
	}
	return call.do(line)
}

// newCallID names a call that came from outside.
func (p *peer) newCallID() string {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.count++
	return fmt.Sprintf("in-%d", p.count)
}

func (p *peer) add(id string, call *call) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.calls[id] = call
}

func (p *peer) remove(id string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	delete(p.calls, id)
}
