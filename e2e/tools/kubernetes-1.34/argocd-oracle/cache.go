package main

import (
	"context"
	"errors"
	"fmt"
	"time"
	_ "unsafe" // For go:linkname.

	"github.com/redis/go-redis/v9"

	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/cache"
	"github.com/argoproj/argo-cd/v3/util/cache/appstate"
)

//go:linkname treeShardSize github.com/argoproj/argo-cd/v3/util/cache/appstate.treeShardSize
var treeShardSize int64

// memory is what a Redis has been told.
type memory struct {
	values   map[string][]byte
	channels []string
}

// answering answers the commands of a Redis client in its place, from one memory at a time.
type answering struct{ memory *memory }

func (a *answering) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a *answering) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a *answering) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, command redis.Cmder) error {
		key := fmt.Sprint(command.Args()[1])
		switch command.Name() {
		case "set":
			a.memory.values[key] = command.Args()[2].([]byte)
		case "get":
			value, ok := a.memory.values[key]
			if !ok {
				command.SetErr(redis.Nil)
				return redis.Nil
			}
			command.(*redis.StringCmd).SetVal(string(value))
		case "publish":
			a.memory.channels = append(a.memory.channels, key)
		default:
			return errors.New("no such command: " + command.Name())
		}
		return nil
	}
}

var (
	redisAnswers = &answering{}
	// It never connects.
	redisClient = func() *redis.Client {
		client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		client.AddHook(redisAnswers)
		return client
	}()
)

// cacheOf is Argo CD's cache over this memory, until it is called again.
func cacheOf(m *memory, compression cache.RedisCompressionType) *appstate.Cache {
	redisAnswers.memory = m
	return appstate.NewCache(cache.NewCache(cache.NewRedisCache(redisClient, time.Hour, compression)), time.Hour)
}

// cached: what Argo CD writes for an Application and a cluster, by key, where it tells of changes, and whether it reads
// another value there as nothing.
func cached(of struct {
	Compression cache.RedisCompressionType `json:"compression"`
	Application string                     `json:"application"`
	Nodes       int                        `json:"nodes"`
	ShardSize   int64                      `json:"shardSize"`
	Empty       map[string][]byte          `json:"empty"`
}) (any, error) {
	treeShardSize = of.ShardSize
	written := &memory{values: map[string][]byte{}}
	state := cacheOf(written, of.Compression)
	tree := &v1alpha1.ApplicationTree{}
	for number := range of.Nodes {
		tree.Nodes = append(tree.Nodes, v1alpha1.ResourceNode{ResourceRef: v1alpha1.ResourceRef{Name: fmt.Sprint(number)}})
	}
	if err := state.SetAppResourcesTree(of.Application, tree); err != nil {
		return nil, err
	}
	if err := state.SetAppManagedResources(of.Application, []*v1alpha1.ResourceDiff{}); err != nil {
		return nil, err
	}
	read := cacheOf(&memory{values: of.Empty}, of.Compression)
	var resources []*v1alpha1.ResourceDiff
	var nothing v1alpha1.ApplicationTree
	if err := errors.Join(
		read.GetAppManagedResources(of.Application, &resources),
		read.GetAppResourcesTree(of.Application, &nothing),
	); err != nil {
		return nil, err
	}
	keys := []string{}
	for key := range written.values {
		keys = append(keys, key)
	}
	return map[string]any{"keys": keys, "channels": written.channels, "read": len(resources) + len(nothing.Nodes)}, nil
}

// clusterInfo: where Argo CD keeps what it knows of a cluster, how it writes that, and how it reads what is kept there.
func clusterInfo(of struct {
	Compression cache.RedisCompressionType `json:"compression"`
	Server      string                     `json:"server"`
	Info        v1alpha1.ClusterInfo       `json:"info"`
	Key         string                     `json:"key"`
	Value       []byte                     `json:"value"`
}) (any, error) {
	written := &memory{values: map[string][]byte{}}
	if err := cacheOf(written, of.Compression).SetClusterInfo(of.Server, &of.Info); err != nil {
		return nil, err
	}
	var read v1alpha1.ClusterInfo
	kept := &memory{values: map[string][]byte{of.Key: of.Value}}
	if err := cacheOf(kept, of.Compression).GetClusterInfo(of.Server, &read); err != nil {
		return nil, err
	}
	return map[string]any{"written": written.values, "read": read}, nil
}
