// Command supervise runs one command and makes sure that it and everything it started ends: when the command ends,
// when the pipe on standard input closes (the process that asked for it has gone, however it went), or on request.
//
// Usage: supervise [-input | -terminal] COMMAND [ARGUMENT...]
//
// Standard input is the control pipe: each line is "signal N" (to the command alone), "resize ROWS COLUMNS" or "kill" (to all
// of it). File descriptor 3 reports: "started PID", then "exited CODE" or "signaled N"; or "failed MESSAGE" instead of both.
// The command itself gets an empty standard input, or with -input file descriptor 4, and this process's standard output and
// error. With -terminal all three are a terminal, which is fed from file descriptor 4 and shown on standard output.
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	// The kernel ties the command's parent-death signal to the thread that started it, so this thread must stay.
	runtime.LockOSThread()
	report := os.NewFile(3, "report")
	syscall.CloseOnExec(3)
	command := os.Args[1:]
	mode := ""
	if len(command) > 0 && (command[0] == "-input" || command[0] == "-terminal") {
		mode, command = command[0], command[1:]
		syscall.CloseOnExec(4)
	}
	if len(command) == 0 {
		fmt.Fprintln(report, "failed usage: supervise [-input | -terminal] COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	// Ctrl-C reaches the whole foreground group; ending in good order is for the process at the other end of the pipe
	// to decide. Caught and dropped, not ignored: an ignored signal would stay ignored in the command.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	adoptOrphans()

	console, err := newConsole(mode)
	child := 0
	if err == nil {
		child, err = start(command, console)
	}
	if err != nil {
		fmt.Fprintln(report, "failed", strings.ReplaceAll(err.Error(), "\n", " "))
		os.Exit(1)
	}
	fmt.Fprintln(report, "started", child)
	console.connect()
	go obey(child, console)

	status := reap(child)
	console.drain()
	if status.Signaled() {
		fmt.Fprintln(report, "signaled", int(status.Signal()))
	} else {
		fmt.Fprintln(report, "exited", status.ExitStatus())
	}
}

func start(command []string, console *console) (int, error) {
	path, err := exec.LookPath(command[0])
	if err != nil {
		return 0, err
	}
	sys := attributes()
	if console.master != nil {
		// The command leads a session whose terminal this is; a session's leader has a process group of its own.
		sys.Setpgid, sys.Setsid, sys.Setctty, sys.Ctty = false, true, true, 0
	}
	return syscall.ForkExec(path, command, &syscall.ProcAttr{Env: os.Environ(), Files: console.files, Sys: sys})
}

// obey carries out the lines of the control pipe; its end means that nobody is left to want the command.
func obey(child int, console *console) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		if verb == "kill" {
			break
		}
		if verb == "resize" {
			console.resize(rest)
		}
		if n, err := strconv.Atoi(rest); err == nil && verb == "signal" {
			_ = syscall.Kill(child, syscall.Signal(n))
		}
	}
	killAll(child)
}

// reap waits for the command and every orphan of it that this process was given. Once the command has ended, each death
// is followed by killing what is left: the children of the dead have become ours by then, so none gets away.
func reap(child int) (status syscall.WaitStatus) {
	ended := false
	for {
		var each syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &each, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return status
		}
		if pid == child {
			status, ended = each, true
		}
		if ended {
			killAll(child)
		}
	}
}

// killAll kills the command's process group and the descendants that left it.
func killAll(child int) {
	_ = syscall.Kill(-child, syscall.SIGKILL)
	for _, pid := range descendants() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
