// Command redis stands in for redis-server where none is installed: an in-memory Redis that takes the options of
// redis-server's command line that matter here (--port, --bind, --requirepass) and accepts the others unread.
package main

import (
	"log"
	"net"
	"os"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
)

func main() {
	host, port, password := "127.0.0.1", "6379", ""
	for i := 1; i < len(os.Args); i++ {
		name, value := os.Args[i], ""
		// As redis-server reads it: "--name value value ..." up to the next name.
		for ; i+1 < len(os.Args) && !strings.HasPrefix(os.Args[i+1], "--"); i++ {
			if value == "" {
				value = os.Args[i+1]
			}
		}
		switch name {
		case "--bind":
			host = strings.TrimPrefix(value, "-")
			if host == "*" {
				host = ""
			}
		case "--port":
			port = value
		case "--requirepass":
			password = value
		}
	}
	server := miniredis.NewMiniRedis()
	if password != "" {
		server.RequireAuth(password)
	}
	if err := server.StartAddr(net.JoinHostPort(host, port)); err != nil {
		log.Fatal(err)
	}
	log.Printf("Ready to accept connections on %s", server.Addr())
	// Its keys age only when told to.
	for range time.Tick(time.Second) {
		server.FastForward(time.Second)
	}
}
