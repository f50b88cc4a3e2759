package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"

	pb "wherry.dev/go/connector/v1"
)

const (
	// frameBytesTarget is used when the engine names none; frameBytesMax bounds what it may name.
	frameBytesTarget = 2 << 20
	frameBytesMax    = 8 << 20
	// offsetBytes is what a row costs beside its value in the COLUMNS encoding.
	offsetBytes = 4

	heartbeatInterval = 10 * time.Second
	silenceMax        = 60 * time.Second
)

// countSource serves SourceService: every task counts by itself.
type countSource struct {
	pb.UnimplementedSourceServiceServer
	plugin *plugin
}

// Plan implements SourceService.
func (s *countSource) Plan(_ context.Context, request *pb.PlanRequest) (*pb.PlanResponse, error) {
	if _, err := s.plugin.current(pb.Role_ROLE_SOURCE); err != nil {
		return nil, err
	}
	response := &pb.PlanResponse{}
	for task := range max(1, request.TasksMax) {
		id := strconv.FormatUint(uint64(task), 10)
		response.Tasks = append(response.Tasks, &pb.Work{
			Id:             id,
			Descriptor_:    []byte(id),
			Config:         map[string]string{"task": id},
			PartitionsJson: []string{partitionOf(id)},
		})
	}
	return response, nil
}

// AlterOffsets implements SourceService: any count of any task will do.
func (s *countSource) AlterOffsets(_ context.Context, request *pb.AlterOffsetsRequest) (*pb.AlterOffsetsResponse, error) {
	for _, position := range request.Positions {
		var partition struct{ Task *uint32 }
		if json.Unmarshal([]byte(position.PartitionJson), &partition) != nil || partition.Task == nil {
			return nil, fail(pb.ErrorClass_ERROR_CLASS_CONFIG,
				`partition %s is not one of tally's; an example is {"task":0}`, position.PartitionJson)
		}
		if position.OffsetJson == nil {
			continue
		}
		if _, err := countOf(*position.OffsetJson); err != nil {
			return nil, err
		}
	}
	return &pb.AlterOffsetsResponse{Handled: true}, nil
}

// Read implements SourceService.
func (s *countSource) Read(stream grpc.BidiStreamingServer[pb.ReadRequest, pb.ReadResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	open := first.GetOpen()
	if open == nil || open.Work == nil {
		return fail(pb.ErrorClass_ERROR_CLASS_BUG, "the first message of a Read stream has to be open, with work")
	}
	bound, stopping, err := s.plugin.enter(pb.Role_ROLE_SOURCE, open.Generation)
	if err != nil {
		return err
	}
	defer s.plugin.leave()
	reader, err := newCountReader(stream, bound, open)
	if err != nil {
		return err
	}
	go reader.listen()
	return reader.run(stopping)
}

// countReader is one Read stream. Only run sends; only listen receives.
type countReader struct {
	stream     grpc.BidiStreamingServer[pb.ReadRequest, pb.ReadResponse]
	bound      *binding
	encoding   pb.Encoding
	partition  string
	rowsTarget int
	seq        uint64
	count      int64
	lastSent   time.Time

	mutex     sync.Mutex
	credit    credit
	lastHeard time.Time
	draining  bool
	received  error
	// news wakes run when listen has changed something.
	news chan struct{}
}

// credit is what may still be sent.
type credit struct {
	frames int64
	bytes  int64
}

func (c *credit) add(more *pb.Credit) {
	c.frames += int64(more.GetFrames())
	c.bytes += int64(more.GetBytes())
}

func newCountReader(
	stream grpc.BidiStreamingServer[pb.ReadRequest, pb.ReadResponse], bound *binding, open *pb.ReadOpen,
) (*countReader, error) {
	writable := []pb.Encoding{pb.Encoding_ENCODING_COLUMNS, pb.Encoding_ENCODING_JSON_LINES}
	index := slices.IndexFunc(open.Encodings, func(one pb.Encoding) bool { return slices.Contains(writable, one) })
	if index < 0 {
		return nil, fail(pb.ErrorClass_ERROR_CLASS_BUG, "CountSource writes COLUMNS and JSON_LINES; the engine takes neither")
	}
	task := string(open.Work.Descriptor_)
	if _, err := strconv.ParseUint(task, 10, 32); err != nil {
		return nil, fail(pb.ErrorClass_ERROR_CLASS_BUG, "the descriptor %q is not one of Plan's", task)
	}
	target := int(min(open.FrameBytesTarget, frameBytesMax))
	if target == 0 {
		target = frameBytesTarget
	}
	reader := &countReader{
		stream: stream, bound: bound, encoding: open.Encodings[index], partition: partitionOf(task),
		rowsTarget: max(1, target/(bound.count.valueBytes+offsetBytes)),
		lastSent:   time.Now(), lastHeard: time.Now(), news: make(chan struct{}, 1),
	}
	reader.credit.add(open.Credit)
	for _, position := range open.Positions {
		if position.PartitionJson != reader.partition || position.OffsetJson == nil {
			continue
		}
		count, err := countOf(*position.OffsetJson)
		if err != nil {
			return nil, err
		}
		reader.count = count
	}
	return reader, nil
}

// listen takes in what the engine says until the stream ends.
func (r *countReader) listen() {
	for {
		message, err := r.stream.Recv()
		r.mutex.Lock()
		r.lastHeard = time.Now()
		switch {
		case errors.Is(err, io.EOF):
			r.draining = true // An engine that half-closes wants no more.
		case err != nil:
			r.received = err
		case message.GetCredit() != nil:
			r.credit.add(message.GetCredit())
		case message.GetDrain() != nil:
			r.draining = true
		}
		r.mutex.Unlock()
		select {
		case r.news <- struct{}{}:
		default: // run has not looked yet; it will see this too.
		}
		if err != nil {
			return
		}
	}
}

// run sends until the stream ends.
func (r *countReader) run(stopping <-chan struct{}) error {
	if err := r.open(); err != nil {
		return err
	}
	pace := newPace(r.bound.count.rate, time.Now())
	caughtUp := false
	for {
		select {
		case <-r.bound.ended:
			return fenced(r.bound.generation)
		case <-stopping:
			return r.send(&pb.ReadResponse{Message: &pb.ReadResponse_End{End: &pb.ReadEnd{}}})
		default:
		}
		mayFrame, draining, err := r.state()
		if err != nil {
			return err
		}
		if draining {
			return r.send(&pb.ReadResponse{Message: &pb.ReadResponse_End{End: &pb.ReadEnd{}}})
		}
		wait := heartbeatInterval - time.Since(r.lastSent)
		if left := r.left(); left == 0 && !caughtUp {
			caughtUp = true
			if err := r.send(&pb.ReadResponse{Message: &pb.ReadResponse_CaughtUp{CaughtUp: &pb.CaughtUp{}}}); err != nil {
				return err
			}
			continue
		} else if left > 0 && mayFrame {
			rows, next := pace.due(time.Now(), min(left, int64(r.rowsTarget)))
			if rows > 0 {
				if err := r.sendCount(int(rows)); err != nil {
					return err
				}
				continue
			}
			wait = min(wait, next)
		}
		if err := r.wait(wait, stopping); err != nil {
			return err
		}
	}
}

// open sends what comes before any data.
func (r *countReader) open() error {
	opened := &pb.ReadResponse_Opened{Opened: &pb.ReadOpened{Encoding: r.encoding}}
	if err := r.send(&pb.ReadResponse{Message: opened}); err != nil {
		return err
	}
	if r.encoding == pb.Encoding_ENCODING_JSON_LINES {
		return nil
	}
	body, err := schemaBody(r.encoding)
	if err != nil {
		return err
	}
	return r.sendFrame(&pb.Frame{Kind: pb.FrameKind_FRAME_KIND_SCHEMA, Body: body})
}

// state looks at what listen has taken in.
func (r *countReader) state() (mayFrame, draining bool, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.received != nil {
		return false, false, r.received
	}
	if time.Since(r.lastHeard) > silenceMax {
		return false, false, fail(pb.ErrorClass_ERROR_CLASS_TRANSIENT, "nothing was heard from the engine for %s", silenceMax)
	}
	return r.credit.frames > 0 && r.credit.bytes > 0, r.draining, nil
}

// left is the number of rows that are still to be sent.
func (r *countReader) left() int64 {
	if r.bound.count.count == 0 {
		return int64(r.rowsTarget)
	}
	return max(0, r.bound.count.count-r.count)
}

// wait lets time pass until there is news, and sends a heartbeat when one is due.
func (r *countReader) wait(most time.Duration, stopping <-chan struct{}) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-r.news:
	case <-r.bound.ended:
	case <-stopping:
	case <-timer.C:
		if time.Since(r.lastSent) >= heartbeatInterval {
			heartbeat := &pb.Heartbeat{TimeMs: time.Now().UnixMilli()}
			return r.send(&pb.ReadResponse{Message: &pb.ReadResponse_Heartbeat{Heartbeat: heartbeat}})
		}
	}
	return nil
}

func (r *countReader) sendCount(rows int) error {
	body, err := countBody(r.encoding, r.count+1, rows, r.bound.count.valueBytes)
	if err != nil {
		return err
	}
	r.count += int64(rows)
	offset := `{"count":` + strconv.FormatInt(r.count, 10) + `}`
	r.mutex.Lock()
	r.credit.frames--
	r.credit.bytes -= int64(len(body))
	r.mutex.Unlock()
	return r.sendFrame(&pb.Frame{
		Kind:      pb.FrameKind_FRAME_KIND_BATCH,
		RowCount:  uint32(rows),
		Marks:     []*pb.Mark{{RowCount: uint32(rows), Position: &pb.Position{PartitionJson: r.partition, OffsetJson: &offset}}},
		Constants: &pb.RecordConstants{Topic: &r.bound.count.topic},
		Body:      body,
	})
}

func (r *countReader) sendFrame(frame *pb.Frame) error {
	r.seq++
	frame.Seq = r.seq
	frame.SchemaId = 1
	frame.Encoding = r.encoding
	return r.send(&pb.ReadResponse{Message: &pb.ReadResponse_Frame{Frame: frame}})
}

func (r *countReader) send(message *pb.ReadResponse) error {
	r.lastSent = time.Now()
	return r.stream.Send(message)
}

// partitionOf is the partition of a task as compact JSON.
func partitionOf(task string) string {
	return `{"task":` + task + `}`
}

// countOf reads an offset.
func countOf(offsetJSON string) (int64, error) {
	var offset struct{ Count *int64 }
	if json.Unmarshal([]byte(offsetJSON), &offset) != nil || offset.Count == nil || *offset.Count < 0 {
		return 0, fail(pb.ErrorClass_ERROR_CLASS_CONFIG,
			`offset %s is not one of tally's; an example is {"count":1000}`, offsetJSON)
	}
	return *offset.Count, nil
}
