package main

import (
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "wherry.dev/go/connector/v1"
)

// errorDomain marks the ErrorInfo that the engine acts on.
const errorDomain = "wherry.dev"

// grpcCodes gives the code that fits an error class; the engine acts on the class, bystanders on the code.
var grpcCodes = map[pb.ErrorClass]codes.Code{
	pb.ErrorClass_ERROR_CLASS_TRANSIENT: codes.Unavailable,
	pb.ErrorClass_ERROR_CLASS_CONFIG:    codes.InvalidArgument,
	pb.ErrorClass_ERROR_CLASS_FENCED:    codes.Aborted,
	pb.ErrorClass_ERROR_CLASS_BUG:       codes.Internal,
}

// fail makes a status of an error class with one sentence for a person.
func fail(class pb.ErrorClass, format string, arguments ...any) error {
	plain := status.New(grpcCodes[class], fmt.Sprintf(format, arguments...))
	reason := class.String()[len("ERROR_CLASS_"):]
	detailed, err := plain.WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: errorDomain})
	if err != nil {
		return plain.Err()
	}
	return detailed.Err()
}
