// Command redis is a Redis for tests and demonstrations, used where redis-server is not installed.
//
// It answers as Redis 8.0 does, byte by byte, to what the tests, the programs and Argo CD ask: e2e/redis asks both the same. It has
// strings with lifetimes, channels, transactions, notifications of changed keys (CLIENT TRACKING without options), both versions of
// the protocol, one password and TLS. Other commands are unknown to it, and it does not start with options that it does not
// know. It keeps nothing on disk.
//
// Where nobody asks, it is simpler: FLUSHALL of a client with tracking is answered before the client is notified, SSUBSCRIBE is
// possible in a transaction, and only the upper one of the two limits of a subscriber's output counts. A failed AUTH always has
// an answer, which Redis forgets, since 7.2, while others wait to be sent.
package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "redis:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	options, err := parseOptions(args)
	if err != nil {
		return err
	}
	listeners, err := listen(options)
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	server := newServer(options.password)
	ended := make(chan error)
	for _, listener := range listeners {
		go func() { ended <- server.serve(listener) }()
	}
	fmt.Println("Ready to accept connections")
	select {
	case <-stop:
		return nil
	case err := <-ended:
		return err
	}
}

func listen(options options) ([]net.Listener, error) {
	var listeners []net.Listener
	for _, address := range options.addresses {
		if options.port != 0 {
			listener, err := net.Listen("tcp", net.JoinHostPort(address.host, strconv.Itoa(options.port)))
			if address.mayBeAway && errors.Is(err, syscall.EADDRNOTAVAIL) {
				continue
			}
			if err != nil {
				return nil, err
			}
			listeners = append(listeners, listener)
		}
		if options.tlsPort != 0 {
			config, err := options.tls()
			if err != nil {
				return nil, err
			}
			listener, err := tls.Listen("tcp", net.JoinHostPort(address.host, strconv.Itoa(options.tlsPort)), config)
			if address.mayBeAway && errors.Is(err, syscall.EADDRNOTAVAIL) {
				continue
			}
			if err != nil {
				return nil, err
			}
			listeners = append(listeners, listener)
		}
	}
	if len(listeners) == 0 {
		return nil, errors.New("nothing to listen on: --port or --tls-port must not be 0")
	}
	return listeners, nil
}
