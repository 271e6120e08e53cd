package main

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	// Compressed calls are understood, and made if asked for, as by the originals.
	_ "google.golang.org/grpc/encoding/gzip"
)

// raw carries messages as they are. It takes the place of the protobuf codec under its name, so that nothing on the wire
// tells the difference.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(message any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*message.(*[]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, message any) error {
	*message.(*[]byte) = data.Materialize()
	return nil
}

func init() { encoding.RegisterCodecV2(raw{}) }

// step is what is done to a call in order: a message is sent, or its sending side ended.
type step struct {
	message []byte
	end     bool
	code    codes.Code
	reason  string
}

// call is an open stream of either side.
type call struct {
	id     string
	steps  chan step
	cancel func()
}

func newCall(id string, cancel func()) *call {
	return &call{id: id, steps: make(chan step, 1<<14), cancel: cancel}
}

func (c *call) do(line command) error {
	next := step{message: line.Bytes}
	switch line.Op {
	case "send":
	case "closeSend":
		next = step{end: true}
	case "finish":
		code, err := codeNamed(line.Code)
		if err != nil {
			return err
		}
		next = step{end: true, code: code, reason: line.Message}
	case "cancel":
		c.cancel()
		return nil
	default:
		return fmt.Errorf("there is no operation %q", line.Op)
	}
	select {
	case c.steps <- next:
		return nil
	default:
		return fmt.Errorf("call %s does not take any more", c.id)
	}
}

func codeNamed(name string) (codes.Code, error) {
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		if code.String() == name {
			return code, nil
		}
	}
	return codes.Unknown, fmt.Errorf("there is no status %q", name)
}

func ended(id string, err error, trailer map[string][]string) report {
	result := status.Convert(err)
	return report{Event: "end", ID: id, Code: result.Code().String(), Message: result.Message(), Trailer: trailer}
}
