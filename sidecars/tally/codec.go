package main

import (
	"encoding/binary"
	"io"

	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "wherry.dev/go/connector/v1"
)

const (
	// frameField is the field of a WriteRequest that holds a frame, bodyField the last one of a Frame.
	frameField = 2
	bodyField  = 1000
	// headBytesMax is how far into a message the body is looked for; a frame with more marks than that is read whole.
	headBytesMax = 4096
	// headBytesMin is how much of a message has to follow before it is worth the search.
	headBytesMin = 64 << 10
)

// bodySkipper is protobuf's codec, but for large frames that are given to the sink: it leaves their bodies out, because
// they would be copied twice only to be forgotten.
type bodySkipper struct{ encoding.CodecV2 }

func newCodec() encoding.CodecV2 {
	return bodySkipper{encoding.GetCodecV2(protocodec.Name)}
}

// Unmarshal implements encoding.CodecV2.
func (c bodySkipper) Unmarshal(data mem.BufferSlice, message any) error {
	request, isWrite := message.(*pb.WriteRequest)
	if !isWrite || data.Len() < headBytesMin {
		return c.CodecV2.Unmarshal(data, message)
	}
	head := make([]byte, headBytesMax)
	reader := data.Reader()
	n, err := io.ReadFull(reader, head)
	_ = reader.Close()
	if err != nil {
		return c.CodecV2.Unmarshal(data, message)
	}
	fields, found := fieldsBeforeBody(head[:n], data.Len())
	if !found {
		return c.CodecV2.Unmarshal(data, message)
	}
	frame := &pb.Frame{}
	if err := proto.Unmarshal(fields, frame); err != nil {
		return err
	}
	request.Message = &pb.WriteRequest_Frame{Frame: frame}
	return nil
}

// fieldsBeforeBody returns the fields of a frame up to its body, if the message is nothing but one frame that ends with
// it. It walks from tag to tag: any value may look like a tag.
func fieldsBeforeBody(head []byte, messageBytes int) (fields []byte, found bool) {
	number, kind, n := protowire.ConsumeTag(head)
	if n < 0 || number != frameField || kind != protowire.BytesType {
		return nil, false
	}
	frameBytes, m := binary.Uvarint(head[n:])
	if m <= 0 || n+m+int(frameBytes) != messageBytes {
		return nil, false
	}
	start := n + m
	for at := start; at < len(head); {
		number, kind, n := protowire.ConsumeTag(head[at:])
		if n < 0 {
			return nil, false
		}
		if number == bodyField && kind == protowire.BytesType {
			bodyBytes, m := binary.Uvarint(head[at+n:])
			return head[start:at], m > 0 && at+n+m+int(bodyBytes) == messageBytes
		}
		size := protowire.ConsumeFieldValue(number, kind, head[at+n:])
		if size < 0 {
			return nil, false
		}
		at += n + size
	}
	return nil, false
}
