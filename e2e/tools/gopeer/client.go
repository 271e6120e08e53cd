package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
)

// client is a connection as argocd-agent's agent makes one: its user agent, no deadlines, no limit for connecting.
type client struct {
	connection *grpc.ClientConn
}

func (p *peer) dial(line command) error {
	transport := insecure.NewCredentials()
	if line.TLS != nil {
		config, err := clientTLS(line.TLS)
		if err != nil {
			return err
		}
		transport = credentials.NewTLS(config)
	}
	calls := []grpc.CallOption{
		grpc.MaxCallRecvMsgSize(line.MaxMessageBytes),
		grpc.MaxCallSendMsgSize(line.MaxMessageBytes),
	}
	if line.Gzip {
		calls = append(calls, grpc.UseCompressor("gzip"))
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithUserAgent("argocd-agent/v0.0.1"),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: 365 * 24 * time.Hour}),
		grpc.WithDefaultCallOptions(calls...),
	}
	if line.KeepaliveMs > 0 {
		options = append(options, grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: time.Duration(line.KeepaliveMs) * time.Millisecond,
		}))
	}
	connection, err := grpc.NewClient("passthrough:///"+line.Address, options...)
	if err != nil {
		return err
	}
	p.clients[line.ID] = &client{connection}
	go watch(line.ID, connection)
	return nil
}

func clientTLS(material *tlsOp) (*tls.Config, error) {
	config := &tls.Config{ServerName: material.ServerName, RootCAs: x509.NewCertPool()}
	if !config.RootCAs.AppendCertsFromPEM([]byte(material.CA)) {
		return nil, errors.New("no CA")
	}
	if material.Cert != "" {
		pair, err := tls.X509KeyPair([]byte(material.Cert), []byte(material.Key))
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func watch(id string, connection *grpc.ClientConn) {
	for state := connection.GetState(); ; state = connection.GetState() {
		tell(report{Event: "state", ID: id, State: state.String()})
		if state == connectivity.Shutdown {
			return
		}
		connection.WaitForStateChange(context.Background(), state)
	}
}

func (c *client) unary(line command) {
	ctx := metadata.NewOutgoingContext(context.Background(), metadata.New(line.Metadata))
	var answer []byte
	var header, trailer metadata.MD
	err := c.connection.Invoke(ctx, line.Method, &line.Bytes, &answer, grpc.Header(&header), grpc.Trailer(&trailer))
	result := ended(line.ID, err, trailer)
	result.Metadata, result.Bytes = header, answer
	tell(result)
}

// open starts a stream; it is one in both directions, which on the wire is no different from one in only one.
func (p *peer) open(client *client, line command) error {
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(context.Background(), metadata.New(line.Metadata)))
	call := newCall(line.ID, cancel)
	p.add(line.ID, call)
	go func() {
		defer p.remove(line.ID)
		defer cancel()
		stream, err := client.connection.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, line.Method)
		if err != nil {
			tell(ended(line.ID, err, nil))
			return
		}
		go func() {
			for {
				select {
				case <-stream.Context().Done():
					return
				case next := <-call.steps:
					if next.end {
						_ = stream.CloseSend()
						return
					}
					if stream.SendMsg(&next.message) != nil {
						// What went wrong is what receiving ends with.
						return
					}
				}
			}
		}()
		go func() {
			// An answer that consists of a status alone has no header of its own.
			if header, err := stream.Header(); err == nil && header != nil {
				tell(report{Event: "header", ID: line.ID, Metadata: header})
			}
		}()
		for {
			var message []byte
			err := stream.RecvMsg(&message)
			if errors.Is(err, io.EOF) {
				err = nil
			} else if err == nil {
				tell(report{Event: "message", ID: line.ID, Bytes: message})
				continue
			}
			tell(ended(line.ID, err, stream.Trailer()))
			return
		}
	}()
	return nil
}
