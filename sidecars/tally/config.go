package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	pb "wherry.dev/go/connector/v1"
)

const (
	countClass   = "wherry.tally.CountSource"
	discardClass = "wherry.tally.DiscardSink"

	topicKey      = "topic"
	countKey      = "count"
	rateKey       = "rate"
	valueBytesKey = "value.bytes"

	valueBytesDefault = 100
	valueBytesMax     = 1 << 20
)

// countConfig is the parsed configuration of a CountSource.
type countConfig struct {
	topic      string
	count      int64
	rate       float64
	valueBytes int
}

// classes tells what the plugin offers; the answer never changes.
func classes() []*pb.ClassDescription {
	return []*pb.ClassDescription{
		{
			ClassName: countClass,
			Aliases:   []string{"CountSource", "Count"},
			Role:      pb.Role_ROLE_SOURCE,
			Config:    countKeys(),
			PartitionSchemaJson: `{"type":"object","properties":{"task":{"type":"integer","minimum":0}},` +
				`"required":["task"],"additionalProperties":false}`,
			OffsetSchemaJson: `{"type":"object","properties":{"count":{"type":"integer","minimum":0}},` +
				`"required":["count"],"additionalProperties":false}`,
			SourceClass:   pb.SourceClass_SOURCE_CLASS_REPLAYABLE,
			Capabilities:  &pb.Capabilities{Parkable: true, AlterOffsets: true},
			Documentation: "Counts from 1 in every task and sends each number as a text of a fixed size.",
		},
		{
			ClassName:     discardClass,
			Aliases:       []string{"DiscardSink", "Discard"},
			Role:          pb.Role_ROLE_SINK,
			SinkClass:     pb.SinkClass_SINK_CLASS_APPEND,
			Capabilities:  &pb.Capabilities{Parkable: true},
			Documentation: "Counts the rows it is given and forgets them.",
		},
	}
}

func countKeys() []*pb.ConfigKey {
	zero, bytesMax := float64(0), float64(valueBytesMax)
	text := func(value string) *string { return &value }
	atLeastZero := []*pb.Validator{{Check: &pb.Validator_Range{Range: &pb.RangeValidator{Min: &zero}}}}
	return []*pb.ConfigKey{
		{
			Name: topicKey, Type: pb.ConfigType_CONFIG_TYPE_STRING, Required: true, Group: "Data", OrderInGroup: 1,
			Importance:    pb.ConfigImportance_CONFIG_IMPORTANCE_HIGH,
			Documentation: "Topic that the numbers are written to.",
			Validators:    []*pb.Validator{{Check: &pb.Validator_NonEmpty{NonEmpty: true}}},
		},
		{
			Name: countKey, Type: pb.ConfigType_CONFIG_TYPE_LONG, DefaultValue: text("0"), Group: "Data", OrderInGroup: 2,
			Importance:    pb.ConfigImportance_CONFIG_IMPORTANCE_HIGH,
			Documentation: "Number that every task counts to; 0 means that there is no end.",
			Validators:    atLeastZero,
		},
		{
			Name: rateKey, Type: pb.ConfigType_CONFIG_TYPE_DOUBLE, DefaultValue: text("0"), Group: "Data", OrderInGroup: 3,
			Importance:    pb.ConfigImportance_CONFIG_IMPORTANCE_MEDIUM,
			Documentation: "Records per second and task; 0 means as fast as they are taken.",
			Validators:    atLeastZero,
		},
		{
			Name: valueBytesKey, Type: pb.ConfigType_CONFIG_TYPE_INT, Group: "Data", OrderInGroup: 4,
			DefaultValue:  text(strconv.Itoa(valueBytesDefault)),
			Importance:    pb.ConfigImportance_CONFIG_IMPORTANCE_LOW,
			Documentation: "Size of a value in bytes; the number is padded with zeros on its left. A longer number is sent whole.",
			Validators:    []*pb.Validator{{Check: &pb.Validator_Range{Range: &pb.RangeValidator{Min: &zero, Max: &bytesMax}}}},
		},
	}
}

// describe finds a class by its full name or an alias; nil if the plugin has none of that name.
func describe(name string) *pb.ClassDescription {
	for _, class := range classes() {
		if class.ClassName == name {
			return class
		}
		for _, alias := range class.Aliases {
			if alias == name {
				return class
			}
		}
	}
	return nil
}

// unknownClass is the error of a class that the plugin doesn't have.
func unknownClass(name string) error {
	return fail(pb.ErrorClass_ERROR_CLASS_CONFIG, "tally has no class %s; it has %s and %s", name, countClass, discardClass)
}

// values is a configuration that is being read; it gathers what is wrong with it.
type values struct {
	given    map[string]string
	findings []*pb.ConfigValue
}

func (v *values) wrong(key, format string, arguments ...any) {
	v.findings = append(v.findings, &pb.ConfigValue{Name: key, Errors: []string{fmt.Sprintf(format, arguments...)}})
}

// text returns a required text that isn't empty.
func (v *values) text(key string) string {
	text, given := v.given[key]
	text = strings.TrimSpace(text)
	if !given {
		v.wrong(key, "Missing required configuration %q which has no default value.", key)
	} else if text == "" {
		v.wrong(key, "Invalid value  for configuration %s: String must be non-empty", key)
	}
	return text
}

// integer returns a whole number from 0 to most, or a default where none is given.
func (v *values) integer(key, kind string, bits int, most, otherwise int64) int64 {
	text, given := v.given[key]
	if !given {
		return otherwise
	}
	number, err := strconv.ParseInt(strings.TrimSpace(text), 10, bits)
	switch {
	case err != nil:
		v.wrong(key, "Invalid value %s for configuration %s: Not a number of type %s", text, key, kind)
	case number < 0:
		v.wrong(key, "Invalid value %d for configuration %s: Value must be at least 0", number, key)
	case number > most:
		v.wrong(key, "Invalid value %d for configuration %s: Value must be no more than %d", number, key, most)
	default:
		return number
	}
	return otherwise
}

// double returns a finite number of at least 0, or 0 where none is given.
func (v *values) double(key string) float64 {
	text, given := v.given[key]
	if !given {
		return 0
	}
	number, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	switch {
	case err != nil || math.IsNaN(number) || math.IsInf(number, 0):
		v.wrong(key, "Invalid value %s for configuration %s: Not a number of type DOUBLE", text, key)
	case number < 0:
		v.wrong(key, "Invalid value %s for configuration %s: Value must be at least 0", text, key)
	default:
		return number
	}
	return 0
}

// parseCount reads the configuration of a CountSource; the findings have one entry for each key at fault.
func parseCount(given map[string]string) (countConfig, []*pb.ConfigValue) {
	v := &values{given: given}
	config := countConfig{
		topic:      v.text(topicKey),
		count:      v.integer(countKey, "LONG", 64, math.MaxInt64, 0),
		rate:       v.double(rateKey),
		valueBytes: int(v.integer(valueBytesKey, "INT", 32, valueBytesMax, valueBytesDefault)),
	}
	return config, v.findings
}
