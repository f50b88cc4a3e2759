package main

import (
	"context"
	"encoding/binary"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	pb "wherry.dev/go/connector/v1"
)

// testDeadline bounds every call of a test.
const testDeadline = 10 * time.Second

// engine is the other side: clients of all services.
type engine struct {
	t      *testing.T
	ctx    context.Context
	plugin pb.PluginServiceClient
	source pb.SourceServiceClient
	sink   pb.SinkServiceClient
}

func newEngine(t *testing.T) *engine {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server, _, _ := newServer("instance-1")
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
	connection, err := grpc.NewClient("passthrough:///tally", grpc.WithContextDialer(dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(messageBytesMax)))
	must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), testDeadline)
	t.Cleanup(cancel)
	return &engine{
		t: t, ctx: ctx, plugin: pb.NewPluginServiceClient(connection),
		source: pb.NewSourceServiceClient(connection), sink: pb.NewSinkServiceClient(connection),
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (e *engine) configure(class string, generation uint64, config map[string]string) error {
	_, err := e.plugin.Configure(e.ctx, &pb.ConfigureRequest{
		Connector: "c", ClassName: class, Generation: generation, Config: config,
	})
	return err
}

func classOf(t *testing.T, err error) string {
	t.Helper()
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.Domain == errorDomain {
			return info.Reason
		}
	}
	t.Fatalf("%v has no error class", err)
	return ""
}

type readStream = grpc.BidiStreamingClient[pb.ReadRequest, pb.ReadResponse]

func (e *engine) read(open *pb.ReadOpen) readStream {
	e.t.Helper()
	stream, err := e.source.Read(e.ctx)
	must(e.t, err)
	if open.Work == nil {
		open.Work = &pb.Work{Id: "0", Descriptor_: []byte("0")}
	}
	if open.Encodings == nil {
		open.Encodings = []pb.Encoding{pb.Encoding_ENCODING_ARROW_IPC, pb.Encoding_ENCODING_COLUMNS}
	}
	must(e.t, stream.Send(&pb.ReadRequest{Message: &pb.ReadRequest_Open{Open: open}}))
	return stream
}

func enough() *pb.Credit { return &pb.Credit{Frames: 8, Bytes: 16 << 20} }

// batches gathers the batch frames up to caught_up or the end.
func batches(t *testing.T, stream readStream) []*pb.Frame {
	t.Helper()
	var frames []*pb.Frame
	for {
		message, err := stream.Recv()
		must(t, err)
		switch {
		case message.GetFrame().GetKind() == pb.FrameKind_FRAME_KIND_BATCH:
			frames = append(frames, message.GetFrame())
		case message.GetCaughtUp() != nil, message.GetEnd() != nil:
			return frames
		}
	}
}

func texts(t *testing.T, frame *pb.Frame) []string {
	t.Helper()
	var columns pb.Columns
	must(t, proto.Unmarshal(frame.Body, &columns))
	column := columns.Columns[0]
	var values []string
	for at := 0; at+8 <= len(column.Offsets); at += 4 {
		from, to := binary.LittleEndian.Uint32(column.Offsets[at:]), binary.LittleEndian.Uint32(column.Offsets[at+4:])
		values = append(values, string(column.Data[from:to]))
	}
	return values
}

func TestCountSourceSendsEveryNumberPaddedAndMarked(t *testing.T) {
	e := newEngine(t)
	must(t, e.configure("Count", 1, map[string]string{"topic": "t", "count": "3", "value.bytes": "4"}))
	frames := batches(t, e.read(&pb.ReadOpen{Generation: 1, Credit: enough()}))
	if got := strings.Join(texts(t, frames[0]), " "); got != "0001 0002 0003" {
		t.Errorf("values are %s", got)
	}
	if mark := frames[0].Marks[0]; mark.RowCount != 3 || *mark.Position.OffsetJson != `{"count":3}` {
		t.Errorf("mark is %v", mark)
	}
	if *frames[0].Constants.Topic != "t" {
		t.Errorf("constants are %v", frames[0].Constants)
	}
}

func TestCountSourceGoesOnFromItsPosition(t *testing.T) {
	e := newEngine(t)
	must(t, e.configure(countClass, 1, map[string]string{"topic": "t", "count": "12", "value.bytes": "0"}))
	offset := `{"count":10}`
	frames := batches(t, e.read(&pb.ReadOpen{
		Generation: 1, Credit: enough(), Positions: []*pb.Position{{PartitionJson: `{"task":0}`, OffsetJson: &offset}},
	}))
	if got := strings.Join(texts(t, frames[0]), " "); got != "11 12" {
		t.Errorf("values are %s", got)
	}
}

func TestCountSourceSendsNoMoreFramesThanItHasCreditFor(t *testing.T) {
	e := newEngine(t)
	must(t, e.configure(countClass, 1, map[string]string{"topic": "t"}))
	stream := e.read(&pb.ReadOpen{Generation: 1, Credit: &pb.Credit{Frames: 2, Bytes: 1 << 30}, FrameBytesTarget: 1000})
	must(t, stream.Send(&pb.ReadRequest{Message: &pb.ReadRequest_Heartbeat{Heartbeat: &pb.Heartbeat{}}}))
	time.Sleep(200 * time.Millisecond)
	must(t, stream.Send(&pb.ReadRequest{Message: &pb.ReadRequest_Drain{Drain: &pb.Drain{DeadlineMs: 1000}}}))
	if frames := batches(t, stream); len(frames) != 2 {
		t.Errorf("%d frames came for a credit of 2", len(frames))
	}
}

func TestCountSourceKeepsItsRate(t *testing.T) {
	e := newEngine(t)
	must(t, e.configure(countClass, 1, map[string]string{"topic": "t", "count": "20", "rate": "100"}))
	start := time.Now()
	rows := 0
	for _, frame := range batches(t, e.read(&pb.ReadOpen{Generation: 1, Credit: &pb.Credit{Frames: 99, Bytes: 1 << 30}})) {
		rows += int(frame.RowCount)
	}
	if took := time.Since(start); rows != 20 || took < 180*time.Millisecond {
		t.Errorf("%d rows took %s", rows, took)
	}
}

func TestCountSourceWritesJSONLinesWhenAskedTo(t *testing.T) {
	e := newEngine(t)
	must(t, e.configure(countClass, 1, map[string]string{"topic": "t", "count": "2", "value.bytes": "2"}))
	encodings := []pb.Encoding{pb.Encoding_ENCODING_JSON_LINES}
	frames := batches(t, e.read(&pb.ReadOpen{Generation: 1, Credit: enough(), Encodings: encodings}))
	if got := string(frames[0].Body); got != "{\"value\":\"01\"}\n{\"value\":\"02\"}\n" {
		t.Errorf("body is %s", got)
	}
}

func TestPlanHasOneTaskForEachThatIsWanted(t *testing.T) {
	e := newEngine(t)
	must(t, e.configure(countClass, 1, map[string]string{"topic": "t"}))
	plan, err := e.source.Plan(e.ctx, &pb.PlanRequest{TasksMax: 3})
	must(t, err)
	for index, task := range plan.Tasks {
		if task.Id != strconv.Itoa(index) || task.PartitionsJson[0] != partitionOf(task.Id) {
			t.Errorf("task %d is %v", index, task)
		}
	}
	if len(plan.Tasks) != 3 {
		t.Errorf("there are %d tasks", len(plan.Tasks))
	}
}

func TestAlterOffsetsRefusesWhatItCouldNotGoOnFrom(t *testing.T) {
	e := newEngine(t)
	offset := `{"line":1}`
	_, err := e.source.AlterOffsets(e.ctx, &pb.AlterOffsetsRequest{
		Positions: []*pb.Position{{PartitionJson: `{"task":0}`, OffsetJson: &offset}},
	})
	if class := classOf(t, err); class != "CONFIG" {
		t.Errorf("class is %s", class)
	}
}

func TestConfigureOfAnOlderGenerationIsFenced(t *testing.T) {
	e := newEngine(t)
	must(t, e.configure(discardClass, 2, nil))
	must(t, e.configure(discardClass, 2, nil))
	if class := classOf(t, e.configure(discardClass, 1, nil)); class != "FENCED" {
		t.Errorf("class is %s", class)
	}
}

func TestANewerGenerationEndsOlderStreams(t *testing.T) {
	e := newEngine(t)
	must(t, e.configure(countClass, 1, map[string]string{"topic": "t"}))
	stream := e.read(&pb.ReadOpen{Generation: 1})
	_, err := stream.Recv()
	must(t, err)
	must(t, e.configure(countClass, 2, map[string]string{"topic": "t"}))
	for err == nil {
		_, err = stream.Recv()
	}
	if class := classOf(t, err); class != "FENCED" {
		t.Errorf("class is %s", class)
	}
}

func TestConfigureNamesEveryKeyAtFault(t *testing.T) {
	e := newEngine(t)
	err := e.configure(countClass, 1, map[string]string{"count": "dog", "rate": "-1"})
	for _, part := range []string{
		`Missing required configuration "topic" which has no default value.`,
		"Invalid value dog for configuration count: Not a number of type LONG",
		"Invalid value -1 for configuration rate: Value must be at least 0",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in %v", part, err)
		}
	}
}

func TestValidateConfigRefusesAnUnknownClass(t *testing.T) {
	e := newEngine(t)
	_, err := e.plugin.ValidateConfig(e.ctx, &pb.ValidateConfigRequest{ClassName: "Nobody"})
	if class := classOf(t, err); class != "CONFIG" {
		t.Errorf("class is %s", class)
	}
}

func TestHelloRefusesRevisionsItDoesNotSpeak(t *testing.T) {
	e := newEngine(t)
	_, err := e.plugin.Hello(e.ctx, &pb.HelloRequest{RevisionMin: 2, RevisionMax: 3})
	if class := classOf(t, err); class != "CONFIG" {
		t.Errorf("class is %s", class)
	}
}

func TestHelloTellsTheInstance(t *testing.T) {
	e := newEngine(t)
	hello, err := e.plugin.Hello(e.ctx, &pb.HelloRequest{RevisionMin: 1, RevisionMax: 1})
	must(t, err)
	if hello.InstanceId != "instance-1" || hello.Revision != 1 {
		t.Errorf("hello is %v", hello)
	}
}

type writeStream = grpc.BidiStreamingClient[pb.WriteRequest, pb.WriteResponse]

func (e *engine) write(generation uint64) writeStream {
	e.t.Helper()
	must(e.t, e.configure(discardClass, generation, nil))
	stream, err := e.sink.Write(e.ctx)
	must(e.t, err)
	encodings := []pb.Encoding{pb.Encoding_ENCODING_ARROW_IPC}
	must(e.t, stream.Send(&pb.WriteRequest{Message: &pb.WriteRequest_Open{Open: &pb.WriteOpen{
		Generation: generation, Encodings: encodings,
	}}}))
	opened, err := stream.Recv()
	must(e.t, err)
	if opened.GetOpened().GetEncoding() != encodings[0] {
		e.t.Fatalf("opened is %v", opened)
	}
	return stream
}

func sendFrame(t *testing.T, stream writeStream, frame *pb.Frame) {
	t.Helper()
	frame.Kind = pb.FrameKind_FRAME_KIND_BATCH
	must(t, stream.Send(&pb.WriteRequest{Message: &pb.WriteRequest_Frame{Frame: frame}}))
}

func TestDiscardSinkAcknowledgesInOrderAndAccountsForRows(t *testing.T) {
	e := newEngine(t)
	stream := e.write(1)
	offset := `{"kafka_offset":30}`
	mark := &pb.Mark{RowCount: 20, Position: &pb.Position{PartitionJson: `{"p":0}`, OffsetJson: &offset}}
	sendFrame(t, stream, &pb.Frame{Seq: 1, RowCount: 10})
	sendFrame(t, stream, &pb.Frame{Seq: 2, RowCount: 20, Marks: []*pb.Mark{mark}})
	must(t, stream.Send(&pb.WriteRequest{Message: &pb.WriteRequest_Flush{Flush: &pb.Flush{Id: 7}}}))
	for seq := range uint64(2) {
		ack, err := stream.Recv()
		must(t, err)
		if ack.GetAck().GetSeq() != seq+1 {
			t.Fatalf("ack %d is %v", seq+1, ack)
		}
	}
	message, err := stream.Recv()
	must(t, err)
	flushed := message.GetFlushed()
	if flushed.GetId() != 7 || flushed.RowsWritten != 30 || *flushed.Positions[0].OffsetJson != offset {
		t.Errorf("flushed is %v", flushed)
	}
}

func TestDiscardSinkAcknowledgesAChunkedBatchOnce(t *testing.T) {
	e := newEngine(t)
	stream := e.write(1)
	for chunk := range uint32(3) {
		sendFrame(t, stream, &pb.Frame{Seq: 1, RowCount: 1, ChunkIndex: chunk, ChunkCount: 3, Body: []byte("part")})
	}
	must(t, stream.Send(&pb.WriteRequest{Message: &pb.WriteRequest_Flush{Flush: &pb.Flush{Id: 1}}}))
	ack, err := stream.Recv()
	must(t, err)
	flushed, err := stream.Recv()
	must(t, err)
	if ack.GetAck().GetSeq() != 1 || flushed.GetFlushed().GetRowsWritten() != 1 {
		t.Errorf("ack is %v, flushed is %v", ack, flushed)
	}
}

func TestDiscardSinkRefusesAGapInTheFrames(t *testing.T) {
	e := newEngine(t)
	stream := e.write(1)
	sendFrame(t, stream, &pb.Frame{Seq: 2, RowCount: 1})
	if _, err := stream.Recv(); classOf(t, err) != "BUG" {
		t.Errorf("error is %v", err)
	}
}

func TestAStreamOfAnotherGenerationIsFenced(t *testing.T) {
	e := newEngine(t)
	e.write(2)
	stream, err := e.sink.Write(e.ctx)
	must(t, err)
	must(t, stream.Send(&pb.WriteRequest{Message: &pb.WriteRequest_Open{Open: &pb.WriteOpen{
		Generation: 1, Encodings: []pb.Encoding{pb.Encoding_ENCODING_COLUMNS},
	}}}))
	if _, err := stream.Recv(); classOf(t, err) != "FENCED" {
		t.Errorf("error is %v", err)
	}
}

func TestStopEndsOpenStreams(t *testing.T) {
	e := newEngine(t)
	stream := e.write(1)
	_, err := e.plugin.Stop(e.ctx, &pb.StopRequest{DeadlineMs: 2000})
	must(t, err)
	if message, err := stream.Recv(); err == nil || err.Error() != "EOF" {
		t.Errorf("after Stop came %v, %v", message, err)
	}
}

func TestEventsTellsWhatWasLoggedBefore(t *testing.T) {
	e := newEngine(t)
	must(t, e.configure(discardClass, 1, nil))
	stream, err := e.plugin.Events(e.ctx, &pb.EventsRequest{})
	must(t, err)
	event, err := stream.Recv()
	must(t, err)
	if event.GetLog().GetMessage() != "configured "+discardClass {
		t.Errorf("event is %v", event)
	}
}

func TestPaceMakesUpForNoMoreThanASecond(t *testing.T) {
	start := time.Now()
	p := newPace(10, start)
	if rows, _ := p.due(start.Add(time.Minute), 1000); rows != 11 {
		t.Errorf("%d rows are due after a minute without credit", rows)
	}
	if rows, wait := p.due(start.Add(time.Minute), 1000); rows != 0 || wait <= 0 {
		t.Errorf("%d rows are due, the next after %s", rows, wait)
	}
}

func TestListenTakesTheSocketOfADeadProcessOver(t *testing.T) {
	path := t.TempDir() + "/s"
	first, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	first.SetUnlinkOnClose(false)
	must(t, first.Close())
	second, err := listen("unix://" + path)
	must(t, err)
	must(t, second.Close())
}
