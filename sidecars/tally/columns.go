package main

import (
	"encoding/binary"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	pb "wherry.dev/go/connector/v1"
)

// valueColumn names the only column that a batch must have.
const valueColumn = "value"

// zeros is what a number is padded with.
var zeros = strings.Repeat("0", 1024)

// schemaBody is the body of a SCHEMA frame for rows of one text; the JSON lines need none.
func schemaBody(encoding pb.Encoding) ([]byte, error) {
	if encoding == pb.Encoding_ENCODING_JSON_LINES {
		return nil, nil
	}
	return proto.Marshal(&pb.Columns{Columns: []*pb.Column{{Name: valueColumn, Type: pb.ColumnType_COLUMN_TYPE_STRING}}})
}

// countBody is the body of a BATCH frame with the numbers first … first+rows-1.
func countBody(encoding pb.Encoding, first int64, rows, valueBytes int) ([]byte, error) {
	if encoding == pb.Encoding_ENCODING_JSON_LINES {
		var lines []byte
		for row := range rows {
			lines = append(lines, `{"value":"`...)
			lines = appendPadded(lines, first+int64(row), valueBytes)
			lines = append(lines, "\"}\n"...)
		}
		return lines, nil
	}
	data := make([]byte, 0, rows*max(valueBytes, len(strconv.FormatInt(first+int64(rows), 10))))
	offsets := make([]byte, 4, 4*(rows+1))
	for row := range rows {
		data = appendPadded(data, first+int64(row), valueBytes)
		offsets = binary.LittleEndian.AppendUint32(offsets, uint32(len(data)))
	}
	return proto.Marshal(&pb.Columns{Columns: []*pb.Column{
		{Name: valueColumn, Type: pb.ColumnType_COLUMN_TYPE_STRING, Offsets: offsets, Data: data},
	}})
}

// appendPadded appends a number with zeros on its left up to a width.
func appendPadded(to []byte, number int64, width int) []byte {
	var digits [20]byte
	text := strconv.AppendInt(digits[:0], number, 10)
	for missing := width - len(text); missing > 0; missing -= len(zeros) {
		to = append(to, zeros[:min(missing, len(zeros))]...)
	}
	return append(to, text...)
}
