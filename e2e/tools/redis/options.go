package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// options are those of redis-server's command line that this server has.
type options struct {
	addresses                 []address
	port, tlsPort             int
	password                  string
	certFile, keyFile, caFile string
	authClients               tls.ClientAuthType
}

// address is where a server listens.
type address struct {
	host      string // Empty: all.
	mayBeAway bool   // It is no error that the machine does not have it.
}

// parseOptions reads a command line as redis-server does: "--name value value ..." up to the next name. What redis-server would do
// and this server does not is an error, so that nobody relies on it.
func parseOptions(args []string) (options, error) {
	parsed := options{addresses: []address{{host: "127.0.0.1"}}, port: 6379, authClients: tls.RequireAndVerifyClientCert}
	for len(args) > 0 {
		name, isName := strings.CutPrefix(args[0], "--")
		if !isName {
			return parsed, fmt.Errorf("%q is no option: configuration files are not read", args[0])
		}
		count := 1
		for count < len(args) && !strings.HasPrefix(args[count], "--") {
			count++
		}
		if err := parsed.set(strings.ToLower(name), args[1:count]); err != nil {
			return parsed, fmt.Errorf("--%s: %w", name, err)
		}
		args = args[count:]
	}
	return parsed, nil
}

func (o *options) set(name string, values []string) error {
	if name == "bind" {
		return o.bind(values)
	}
	if len(values) != 1 {
		return fmt.Errorf("it takes one value, not %d", len(values))
	}
	value := values[0]
	var err error
	switch name {
	case "port":
		o.port, err = strconv.Atoi(value)
	case "tls-port":
		o.tlsPort, err = strconv.Atoi(value)
	case "requirepass":
		o.password = value
	case "tls-cert-file":
		o.certFile = value
	case "tls-key-file":
		o.keyFile = value
	case "tls-ca-cert-file":
		o.caFile = value
	case "tls-auth-clients":
		kinds := map[string]tls.ClientAuthType{
			"yes": tls.RequireAndVerifyClientCert, "no": tls.NoClientCert, "optional": tls.VerifyClientCertIfGiven,
		}
		kind, isAuthenticated := kinds[value]
		if !isAuthenticated {
			return fmt.Errorf("%q is none of yes, no and optional", value)
		}
		o.authClients = kind
	case "dir":
		err = os.Chdir(value)
	case "save", "appendonly", "protected-mode":
		// What this server does anyway.
		if only := map[string]string{"appendonly": "no", "protected-mode": "no"}[name]; value != only {
			err = fmt.Errorf("the embedded Redis has only %q, not %q", only, value)
		}
	default:
		err = fmt.Errorf("the embedded Redis does not have this option")
	}
	return err
}

// bind takes addresses as redis-server does: * stands for all, and a - in front of one says that it may be missing.
func (o *options) bind(values []string) error {
	if len(values) == 0 {
		return fmt.Errorf("it takes addresses")
	}
	o.addresses = nil
	for _, value := range values {
		host, mayBeAway := strings.CutPrefix(value, "-")
		if host == "*" {
			host = ""
		}
		o.addresses = append(o.addresses, address{host, mayBeAway})
	}
	return nil
}

func (o *options) tls() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(o.certFile, o.keyFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert-file, --tls-key-file: %w", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: o.authClients}
	if o.authClients == tls.NoClientCert {
		return config, nil
	}
	text, err := os.ReadFile(o.caFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-ca-cert-file, which --tls-auth-clients needs: %w", err)
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--tls-ca-cert-file: %s holds no certificate", o.caFile)
	}
	return config, nil
}
