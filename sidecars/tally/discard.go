package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc"

	pb "wherry.dev/go/connector/v1"
)

const (
	// framesUnackedMax and bytesUnackedMax are the first credit; every ack gives its frame's back.
	framesUnackedMax = 8
	bytesUnackedMax  = 16 << 20
)

// discardSink serves SinkService: it counts rows by what the frames say of themselves.
type discardSink struct {
	pb.UnimplementedSinkServiceServer
	plugin *plugin
}

// EnsureTarget implements SinkService; rows of any schema vanish alike.
func (s *discardSink) EnsureTarget(_ context.Context, request *pb.EnsureTargetRequest) (*pb.EnsureTargetResponse, error) {
	return &pb.EnsureTargetResponse{Target: "nowhere"}, nil
}

// Commit implements SinkService; a sink that appends has no tokens.
func (s *discardSink) Commit(context.Context, *pb.CommitRequest) (*pb.CommitResponse, error) {
	return &pb.CommitResponse{}, nil
}

// AlterOffsets implements SinkService; nothing is kept that a change would touch.
func (s *discardSink) AlterOffsets(
	context.Context, *pb.SinkServiceAlterOffsetsRequest,
) (*pb.SinkServiceAlterOffsetsResponse, error) {
	return &pb.SinkServiceAlterOffsetsResponse{Handled: true}, nil
}

// Write implements SinkService.
func (s *discardSink) Write(stream grpc.BidiStreamingServer[pb.WriteRequest, pb.WriteResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	open := first.GetOpen()
	if open == nil || len(open.Encodings) == 0 {
		return fail(pb.ErrorClass_ERROR_CLASS_BUG, "the first message of a Write stream has to be open, with encodings")
	}
	bound, stopping, err := s.plugin.enter(pb.Role_ROLE_SINK, open.Generation)
	if err != nil {
		return err
	}
	defer s.plugin.leave()
	received := make(chan *pb.WriteRequest)
	failed := make(chan error, 1)
	go receive(stream, received, failed)
	err = stream.Send(&pb.WriteResponse{Message: &pb.WriteResponse_Opened{Opened: &pb.WriteOpened{
		Encoding: open.Encodings[0],
		Credit:   &pb.Credit{Frames: framesUnackedMax, Bytes: bytesUnackedMax},
	}}})
	if err != nil {
		return err
	}
	writer := &discardWriter{positions: map[string]*pb.Position{}}
	return writer.run(stream, bound, stopping, received, failed)
}

// receive hands on what the engine says, so that the writer can wait for other things too.
func receive(
	stream grpc.BidiStreamingServer[pb.WriteRequest, pb.WriteResponse], received chan<- *pb.WriteRequest, failed chan<- error,
) {
	for {
		message, err := stream.Recv()
		if err != nil {
			failed <- err
			return
		}
		select {
		case received <- message:
		case <-stream.Context().Done():
			return
		}
	}
}

// discardWriter is one Write stream.
type discardWriter struct {
	seq uint64
	// rows since the last flush.
	rows uint64
	// positions that the marks have told since the last flush, by partition.
	positions map[string]*pb.Position
}

func (w *discardWriter) run(
	stream grpc.BidiStreamingServer[pb.WriteRequest, pb.WriteResponse],
	bound *binding, stopping <-chan struct{}, received <-chan *pb.WriteRequest, failed <-chan error,
) error {
	heartbeats := time.NewTicker(heartbeatInterval)
	defer heartbeats.Stop()
	lastHeard := time.Now()
	for {
		var answer *pb.WriteResponse
		select {
		case message := <-received:
			lastHeard = time.Now()
			var err error
			if answer, err = w.take(message); err != nil {
				return err
			}
		case err := <-failed:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case <-bound.ended:
			return fenced(bound.generation)
		case <-stopping:
			return nil
		case now := <-heartbeats.C:
			if now.Sub(lastHeard) > silenceMax {
				return fail(pb.ErrorClass_ERROR_CLASS_TRANSIENT, "nothing was heard from the engine for %s", silenceMax)
			}
			answer = &pb.WriteResponse{Message: &pb.WriteResponse_Heartbeat{Heartbeat: &pb.Heartbeat{TimeMs: now.UnixMilli()}}}
		}
		if answer == nil {
			continue
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
}

// take does what one message asks; nil means that it needs no answer.
func (w *discardWriter) take(message *pb.WriteRequest) (*pb.WriteResponse, error) {
	switch one := message.Message.(type) {
	case *pb.WriteRequest_Frame:
		return w.takeFrame(one.Frame)
	case *pb.WriteRequest_Flush:
		flushed := &pb.Flushed{Id: one.Flush.Id, RowsWritten: w.rows}
		for _, partition := range slices.Sorted(maps.Keys(w.positions)) {
			flushed.Positions = append(flushed.Positions, w.positions[partition])
		}
		w.rows = 0
		clear(w.positions)
		return &pb.WriteResponse{Message: &pb.WriteResponse_Flushed{Flushed: flushed}}, nil
	case *pb.WriteRequest_Open:
		return nil, fail(pb.ErrorClass_ERROR_CLASS_BUG, "a Write stream is opened once")
	default: // Partitions and heartbeats need nothing here.
		return nil, nil
	}
}

// takeFrame counts a frame; a BATCH is acknowledged with its last chunk.
func (w *discardWriter) takeFrame(frame *pb.Frame) (*pb.WriteResponse, error) {
	more := frame.ChunkIndex > 0
	if want := w.seq + 1; !more && frame.Seq != want || more && frame.Seq != w.seq {
		return nil, fail(pb.ErrorClass_ERROR_CLASS_BUG, "frame %d came after frame %d", frame.Seq, w.seq)
	}
	w.seq = frame.Seq
	for _, mark := range frame.Marks {
		w.positions[mark.Position.GetPartitionJson()] = mark.Position
	}
	if frame.Kind != pb.FrameKind_FRAME_KIND_BATCH || frame.ChunkIndex+1 < frame.ChunkCount {
		return nil, nil
	}
	w.rows += uint64(frame.RowCount)
	return &pb.WriteResponse{Message: &pb.WriteResponse_Ack{Ack: &pb.FrameAck{Seq: frame.Seq}}}, nil
}
