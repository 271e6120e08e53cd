//go:build !linux

package main

import "syscall"

// Without Linux's parent-death signal and subreaper, what leaves the process group or outlives a killed supervisor is
// not followed.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func adoptOrphans() {}

func descendants() []int { return nil }
