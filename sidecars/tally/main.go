// Tally is a plugin written from the generated stubs alone: a source that counts and a sink that discards.
//
// It shows what the contract asks of a language without an SDK, and serves as the other end in measurements, so its
// paths are kept short: the sink never looks into a frame's body.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	pb "wherry.dev/go/connector/v1"
)

const (
	endpointVariable = "WHERRY_ENDPOINT"
	instanceVariable = "WHERRY_INSTANCE_ID"

	// messageBytesMax bounds a gRPC message; grpcSlackBytes is what the fields around a full body may take.
	messageBytesMax = 16 << 20
	grpcSlackBytes  = 1 << 20
	// windowBytes lets two frames of the usual size be on their way, which HTTP/2's 64 KiB would not.
	windowBytes = 4 << 20
	// bufferBytes is what one system call moves; gRPC-Go's 32 KiB would take 64 of them for a frame.
	bufferBytes = 256 << 10
	// keepaliveMin is far below gRPC-Go's five minutes, which end the connections of livelier clients.
	keepaliveMin = 5 * time.Second
	// stopGrace bounds the time between SIGTERM and the end of the process.
	stopGrace = 3 * time.Second
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if err := run(ctx, os.Getenv(endpointVariable), os.Getenv(instanceVariable)); err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(2)
	}
}

// run serves the plugin until ctx ends.
func run(ctx context.Context, endpoint, instanceID string) error {
	if endpoint == "" {
		return errors.New(endpointVariable + " is not set: this is a sidecar of the Wherry engine, which starts it with " +
			"the socket to listen on, such as " + endpointVariable + "=unix:///tmp/tally.sock")
	}
	listener, err := listen(endpoint)
	if err != nil {
		return err
	}
	server, plugin, healthServer := newServer(instanceID)
	go func() {
		<-ctx.Done()
		healthServer.Shutdown()
		plugin.stop(stopGrace)
		force := time.AfterFunc(stopGrace, server.Stop)
		defer force.Stop()
		// Subscribers of events never leave by themselves; their streams end with the binding.
		server.GracefulStop()
	}()
	slog.Info("tally listens", "endpoint", endpoint)
	return server.Serve(listener)
}

// newServer makes a gRPC server with every service of the plugin.
func newServer(instanceID string) (*grpc.Server, *plugin, *health.Server) {
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(messageBytesMax+grpcSlackBytes),
		grpc.MaxSendMsgSize(messageBytesMax+grpcSlackBytes),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.WriteBufferSize(bufferBytes),
		grpc.ReadBufferSize(bufferBytes),
		grpc.InitialWindowSize(windowBytes),
		grpc.InitialConnWindowSize(windowBytes),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveMin, PermitWithoutStream: true}),
	)
	p := newPlugin(instanceID)
	healthServer := health.NewServer()
	healthpb.RegisterHealthServer(server, healthServer)
	pb.RegisterPluginServiceServer(server, p)
	pb.RegisterSourceServiceServer(server, &countSource{plugin: p})
	pb.RegisterSinkServiceServer(server, &discardSink{plugin: p})
	return server, p, healthServer
}

// listen opens a Unix socket (unix:///path) or a TCP port (host:port).
func listen(endpoint string) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(endpoint, "unix:")
	if !isUnix {
		listener, err := net.Listen("tcp", endpoint)
		if err != nil {
			return nil, fmt.Errorf("%s=%s can't be listened on: %w", endpointVariable, endpoint, err)
		}
		return listener, nil
	}
	if strings.HasPrefix(path, "//") {
		path = path[2:]
	}
	// A socket left by a killed process would refuse the new one.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s=%s: the old socket can't be removed: %w", endpointVariable, endpoint, err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("%s=%s can't be listened on: %w", endpointVariable, endpoint, err)
	}
	return listener, nil
}
