package main

import (
	"bytes"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	pb "wherry.dev/go/connector/v1"
)

func frameRequest(frame *pb.Frame) *pb.WriteRequest {
	return &pb.WriteRequest{Message: &pb.WriteRequest_Frame{Frame: frame}}
}

func throughCodec(t *testing.T, request *pb.WriteRequest) *pb.WriteRequest {
	t.Helper()
	wire, err := proto.Marshal(request)
	must(t, err)
	// In two buffers, as the network would deliver it.
	data := mem.BufferSlice{mem.SliceBuffer(wire[:len(wire)/2]), mem.SliceBuffer(wire[len(wire)/2:])}
	var got pb.WriteRequest
	must(t, newCodec().Unmarshal(data, &got))
	return &got
}

func TestTheBodyOfALargeFrameIsLeftOut(t *testing.T) {
	offset := `{"kafka_offset":8002}`
	frame := &pb.Frame{
		// 8002 has the bytes of the body's tag.
		Seq: 8002, Kind: pb.FrameKind_FRAME_KIND_BATCH, RowCount: 8002, ChunkIndex: 8002, ChunkCount: 8002,
		Marks:     []*pb.Mark{{RowCount: 8002, Position: &pb.Position{PartitionJson: "\xc2\xbe{}", OffsetJson: &offset}}},
		RowErrors: []*pb.RowError{{Raw: []byte{0xc2, 0x3e, 0x00}}},
		Padding:   []byte{0, 0, 0},
		Body:      bytes.Repeat([]byte{0xc2, 0x3e}, headBytesMin),
	}
	got := throughCodec(t, frameRequest(frame)).GetFrame()
	frame.Body = nil
	if !proto.Equal(got, frame) {
		t.Errorf("got %v", got)
	}
}

func TestAFrameWithManyMarksIsReadWhole(t *testing.T) {
	frame := &pb.Frame{Seq: 1, Body: make([]byte, headBytesMin)}
	for row := range uint32(1000) {
		frame.Marks = append(frame.Marks, &pb.Mark{RowCount: row, Position: &pb.Position{PartitionJson: `{"p":0}`}})
	}
	if request := frameRequest(frame); !proto.Equal(throughCodec(t, request), request) {
		t.Error("the frame was changed")
	}
}

func TestOtherMessagesAreReadAsEver(t *testing.T) {
	for _, request := range []*pb.WriteRequest{
		frameRequest(&pb.Frame{Seq: 3, Body: []byte("small")}),
		{Message: &pb.WriteRequest_Flush{Flush: &pb.Flush{Id: 9}}},
		{Message: &pb.WriteRequest_Open{Open: &pb.WriteOpen{Pipeline: string(bytes.Repeat([]byte("x"), 2*headBytesMin))}}},
	} {
		if !proto.Equal(throughCodec(t, request), request) {
			t.Errorf("%v was changed", request)
		}
	}
}

func TestADamagedMessageIsRefused(t *testing.T) {
	data := mem.BufferSlice{mem.SliceBuffer(bytes.Repeat([]byte{0xff}, 2*headBytesMin))}
	if err := newCodec().Unmarshal(data, &pb.WriteRequest{}); err == nil {
		t.Error("it was taken")
	}
}
