package main

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	pb "wherry.dev/go/connector/v1"
)

const (
	pluginName    = "tally"
	pluginVersion = "0.1.0"
	// revision of the contract that this code was written for.
	revision = 1
	// eventsMax bounds the events that wait for a subscriber; the oldest give way.
	eventsMax = 256
	// stopPoll is the time between two looks at whether the streams have ended.
	stopPoll = 5 * time.Millisecond
)

// binding is what one Configure has set: it stays the same for the streams that were opened under it.
type binding struct {
	connector  string
	class      *pb.ClassDescription
	generation uint64
	count      countConfig
	// ended is closed when a newer generation has taken over.
	ended chan struct{}
}

// plugin serves PluginService, and holds what its source and sink share.
type plugin struct {
	pb.UnimplementedPluginServiceServer
	instanceID string

	mutex   sync.Mutex
	bound   *binding
	streams int
	// stopping is closed by Stop; a Configure after that makes a new one.
	stopping   chan struct{}
	stopped    bool
	terminated bool
	events     chan *pb.EventsResponse
	// listener is closed when another subscriber takes the events over.
	listener chan struct{}
}

func newPlugin(instanceID string) *plugin {
	return &plugin{
		instanceID: instanceID,
		stopping:   make(chan struct{}),
		events:     make(chan *pb.EventsResponse, eventsMax),
	}
}

// Hello implements PluginService.
func (p *plugin) Hello(_ context.Context, request *pb.HelloRequest) (*pb.HelloResponse, error) {
	if request.RevisionMin > revision || request.RevisionMax < revision {
		return nil, fail(pb.ErrorClass_ERROR_CLASS_CONFIG,
			"tally speaks revision %d of the contract, the engine %d to %d", revision, request.RevisionMin, request.RevisionMax)
	}
	return &pb.HelloResponse{
		PluginName:    pluginName,
		PluginVersion: pluginVersion,
		Revision:      revision,
		Limits:        &pb.Limits{MessageBytesMax: messageBytesMax},
		Encodings: []pb.Encoding{
			pb.Encoding_ENCODING_COLUMNS, pb.Encoding_ENCODING_ARROW_IPC, pb.Encoding_ENCODING_JSON_LINES,
		},
		InstanceId: p.instanceID,
		Sdk:        "none (Go stubs)",
	}, nil
}

// Describe implements PluginService.
func (p *plugin) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	return &pb.DescribeResponse{Classes: classes()}, nil
}

// ValidateConfig implements PluginService; both levels are the same because there is no other system.
func (p *plugin) ValidateConfig(_ context.Context, request *pb.ValidateConfigRequest) (*pb.ValidateConfigResponse, error) {
	class := describe(request.ClassName)
	if class == nil {
		return nil, unknownClass(request.ClassName)
	}
	response := &pb.ValidateConfigResponse{SinkClass: class.SinkClass}
	if class.Role == pb.Role_ROLE_SOURCE {
		_, response.Values = parseCount(request.Config)
	}
	return response, nil
}

// Configure implements PluginService.
func (p *plugin) Configure(_ context.Context, request *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	class := describe(request.ClassName)
	if class == nil {
		return nil, unknownClass(request.ClassName)
	}
	next := &binding{
		connector: request.Connector, class: class, generation: request.Generation, ended: make(chan struct{}),
	}
	if class.Role == pb.Role_ROLE_SOURCE {
		var findings []*pb.ConfigValue
		if next.count, findings = parseCount(request.Config); len(findings) > 0 {
			return nil, fail(pb.ErrorClass_ERROR_CLASS_CONFIG, "%s", sentences(findings))
		}
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.bound != nil && request.Generation < p.bound.generation {
		return nil, fail(pb.ErrorClass_ERROR_CLASS_FENCED,
			"generation %d was replaced by generation %d", request.Generation, p.bound.generation)
	}
	if p.bound != nil && request.Generation > p.bound.generation {
		close(p.bound.ended)
	} else if p.bound != nil {
		// The same generation again: streams that are open go on.
		next.ended = p.bound.ended
	}
	p.bound = next
	if p.stopped && !p.terminated {
		p.stopped, p.stopping = false, make(chan struct{})
	}
	p.log(pb.LogLevel_LOG_LEVEL_INFO, "configured "+class.ClassName)
	return &pb.ConfigureResponse{}, nil
}

// Probe implements PluginService.
func (p *plugin) Probe(context.Context, *pb.ProbeRequest) (*pb.ProbeResponse, error) {
	return &pb.ProbeResponse{Detail: "there is no other system to reach"}, nil
}

// Stop implements PluginService.
func (p *plugin) Stop(_ context.Context, request *pb.StopRequest) (*pb.StopResponse, error) {
	p.endStreams(time.Duration(request.DeadlineMs)*time.Millisecond, false)
	return &pb.StopResponse{}, nil
}

// OnDelete implements PluginService; nothing is held anywhere.
func (p *plugin) OnDelete(context.Context, *pb.OnDeleteRequest) (*pb.OnDeleteResponse, error) {
	return &pb.OnDeleteResponse{}, nil
}

// Events implements PluginService.
func (p *plugin) Events(_ *pb.EventsRequest, stream grpc.ServerStreamingServer[pb.EventsResponse]) error {
	mine := make(chan struct{})
	p.mutex.Lock()
	if p.terminated {
		p.mutex.Unlock()
		return nil
	}
	if p.listener != nil {
		close(p.listener)
	}
	p.listener = mine
	p.mutex.Unlock()
	for {
		select {
		case event := <-p.events:
			if err := stream.Send(event); err != nil {
				return err
			}
		case <-mine:
			return nil
		case <-stream.Context().Done():
			return nil
		}
	}
}

// stop ends all streams, those of events too, because the process is about to end.
func (p *plugin) stop(grace time.Duration) {
	p.endStreams(grace, true)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.listener != nil {
		close(p.listener)
		p.listener = nil
	}
}

// endStreams asks Read and Write streams to end and waits for them, no longer than grace.
func (p *plugin) endStreams(grace time.Duration, terminate bool) {
	p.mutex.Lock()
	if !p.stopped {
		p.stopped = true
		close(p.stopping)
	}
	p.terminated = p.terminated || terminate
	p.mutex.Unlock()
	for deadline := time.Now().Add(grace); p.open() > 0 && time.Now().Before(deadline); {
		time.Sleep(stopPoll)
	}
}

func (p *plugin) open() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.streams
}

// enter begins a stream of a role and generation; the caller calls leave when it ends.
func (p *plugin) enter(role pb.Role, generation uint64) (bound *binding, stopping <-chan struct{}, err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err := p.check(role); err != nil {
		return nil, nil, err
	}
	if generation != p.bound.generation {
		return nil, nil, fail(pb.ErrorClass_ERROR_CLASS_FENCED,
			"the stream is of generation %d, the process of generation %d", generation, p.bound.generation)
	}
	if p.stopped {
		return nil, nil, fail(pb.ErrorClass_ERROR_CLASS_TRANSIENT, "the sidecar is stopping")
	}
	p.streams++
	return p.bound, p.stopping, nil
}

// leave ends what enter has begun.
func (p *plugin) leave() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.streams--
}

// current returns the binding if it is of a role.
func (p *plugin) current(role pb.Role) (*binding, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err := p.check(role); err != nil {
		return nil, err
	}
	return p.bound, nil
}

func (p *plugin) check(role pb.Role) error {
	if p.bound == nil {
		return fail(pb.ErrorClass_ERROR_CLASS_BUG, "Configure has to come before this call")
	}
	if p.bound.class.Role != role {
		return fail(pb.ErrorClass_ERROR_CLASS_BUG, "the process was configured as %s, which has no part in this call",
			p.bound.class.ClassName)
	}
	return nil
}

// log sends a log record to whoever listens to the events, and to stderr.
func (p *plugin) log(level pb.LogLevel, message string) {
	slog.Info(message)
	event := &pb.EventsResponse{
		TimeMs: time.Now().UnixMilli(),
		Event:  &pb.EventsResponse_Log{Log: &pb.LogEvent{Level: level, Logger: pluginName, Message: message}},
	}
	for {
		select {
		case p.events <- event:
			return
		default:
		}
		select {
		case <-p.events: // The oldest gives way.
		default:
		}
	}
}

// fenced is the error of a stream whose generation has been replaced.
func fenced(generation uint64) error {
	return fail(pb.ErrorClass_ERROR_CLASS_FENCED, "generation %d was replaced by a newer one", generation)
}

func sentences(findings []*pb.ConfigValue) string {
	var all []string
	for _, finding := range findings {
		all = append(all, finding.Errors...)
	}
	return strings.Join(all, "; ")
}
