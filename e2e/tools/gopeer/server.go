package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	remote "google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// The methods that argocd-agent's principal serves; all others are grpc-go's to refuse.
var unaryMethods = map[string][]string{
	"authapi.Authentication":     {"Authenticate", "RefreshToken"},
	"versionapi.Version":         {"Version"},
	"eventstreamapi.EventStream": {"Ping"},
}

var streamMethods = map[string][]string{
	"eventstreamapi.EventStream":                   {"Subscribe", "Push"},
	"principal.apis.logstreamapi.LogStreamService": {"StreamLogs"},
	"terminalstreamapi.TerminalStreamService":      {"StreamTerminal"},
}

// server listens as argocd-agent's principal does.
type server struct {
	id   string
	peer *peer
	grpc *grpc.Server
}

func (p *peer) listen(line command) error {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(line.MaxMessageBytes),
		grpc.MaxSendMsgSize(line.MaxMessageBytes),
		grpc.StatsHandler(recorder{}),
	}
	if line.TLS != nil {
		config, err := serverTLS(line.TLS)
		if err != nil {
			return err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	if line.KeepaliveMs > 0 {
		options = append(options, grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime: time.Duration(line.KeepaliveMs) * time.Millisecond,
		}))
	}
	listener, err := net.Listen("tcp", line.Address)
	if err != nil {
		return err
	}
	server := &server{id: line.ID, peer: p, grpc: grpc.NewServer(options...)}
	server.register()
	p.servers[line.ID] = server
	tell(report{Event: "listening", ID: line.ID, Address: listener.Addr().String()})
	go func() {
		_ = server.grpc.Serve(listener)
		tell(report{Event: "stopped", ID: line.ID})
	}()
	return nil
}

func serverTLS(material *tlsOp) (*tls.Config, error) {
	pair, err := tls.X509KeyPair([]byte(material.Cert), []byte(material.Key))
	if err != nil {
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	if material.MinVersion == "1.2" {
		config.MinVersion = tls.VersionTLS12
	}
	if material.CA != "" {
		config.ClientCAs = x509.NewCertPool()
		config.ClientAuth = tls.RequireAndVerifyClientCert
		if !config.ClientCAs.AppendCertsFromPEM([]byte(material.CA)) {
			return nil, errors.New("no CA")
		}
	}
	return config, nil
}

func (s *server) register() {
	services := map[string]*grpc.ServiceDesc{}
	service := func(name string) *grpc.ServiceDesc {
		if services[name] == nil {
			services[name] = &grpc.ServiceDesc{ServiceName: name, HandlerType: (*any)(nil)}
		}
		return services[name]
	}
	for name, methods := range unaryMethods {
		for _, method := range methods {
			description := service(name)
			description.Methods = append(description.Methods, grpc.MethodDesc{MethodName: method, Handler: s.unary})
		}
	}
	for name, methods := range streamMethods {
		for _, method := range methods {
			description := service(name)
			description.Streams = append(description.Streams, grpc.StreamDesc{
				StreamName: method, Handler: s.stream, ClientStreams: true, ServerStreams: true,
			})
		}
	}
	for _, description := range services {
		s.grpc.RegisterService(description, struct{}{})
	}
}

func (s *server) stop(graceful bool) {
	if graceful {
		s.grpc.GracefulStop()
	} else {
		s.grpc.Stop()
	}
}

// accept makes a call known under a name of its own.
func (s *server) accept(ctx context.Context, cancel func()) *call {
	call := newCall(s.peer.newCallID(), cancel)
	s.peer.add(call.id, call)
	line := report{Event: "call", ID: call.id, Server: s.id}
	line.Method, _ = grpc.Method(ctx)
	if seen, ok := ctx.Value(headerKey{}).(*stats.InHeader); ok {
		line.Metadata, line.Compression = seen.Header, seen.Compression
	}
	if from, ok := remote.FromContext(ctx); ok {
		line.Peer = from.Addr.String()
		if info, ok := from.AuthInfo.(credentials.TLSInfo); ok && len(info.State.VerifiedChains) > 0 {
			line.Subject = info.State.VerifiedChains[0][0].Subject.String()
		}
	}
	tell(line)
	return call
}

func (s *server) unary(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	var request []byte
	if err := decode(&request); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	call := s.accept(ctx, cancel)
	defer s.peer.remove(call.id)
	tell(report{Event: "message", ID: call.id, Bytes: request})
	tell(report{Event: "halfClose", ID: call.id})
	var answer []byte
	for {
		select {
		case <-ctx.Done():
			tell(ended(call.id, status.FromContextError(ctx.Err()).Err(), nil))
			return nil, status.FromContextError(ctx.Err()).Err()
		case next := <-call.steps:
			if !next.end {
				answer = next.message
			} else if next.code != codes.OK {
				return nil, status.Error(next.code, next.reason)
			} else {
				return &answer, nil
			}
		}
	}
}

func (s *server) stream(_ any, stream grpc.ServerStream) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	call := s.accept(ctx, cancel)
	defer s.peer.remove(call.id)
	received := make(chan error, 1)
	go func() {
		for {
			var message []byte
			err := stream.RecvMsg(&message)
			if errors.Is(err, io.EOF) {
				tell(report{Event: "halfClose", ID: call.id})
				return
			}
			if err != nil {
				received <- err
				return
			}
			tell(report{Event: "message", ID: call.id, Bytes: message})
		}
	}()
	for {
		select {
		case err := <-received:
			tell(ended(call.id, err, nil))
			return err
		case <-ctx.Done():
			err := status.FromContextError(ctx.Err()).Err()
			tell(ended(call.id, err, nil))
			return err
		case next := <-call.steps:
			if next.end {
				return status.Error(next.code, next.reason)
			}
			if err := stream.SendMsg(&next.message); err != nil {
				tell(ended(call.id, err, nil))
				return err
			}
		}
	}
}

// headerKey is where a call's context keeps what its client sent ahead of the first message.
type headerKey struct{}

// recorder keeps the header of each call as the transport saw it: part of it never reaches the handlers.
type recorder struct{}

func (recorder) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, headerKey{}, &stats.InHeader{})
}

func (recorder) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if header, ok := event.(*stats.InHeader); ok {
		kept := ctx.Value(headerKey{}).(*stats.InHeader)
		kept.Header, kept.Compression = metadata.MD(header.Header).Copy(), header.Compression
	}
}

func (recorder) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (recorder) HandleConn(context.Context, stats.ConnStats) {}
