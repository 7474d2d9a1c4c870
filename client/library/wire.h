#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <string>

#include "cumulus/array.h"
#include "cumulus/operation.h"
#include "cumulus/v1/array.pb.h"

/// Between the library's types and the wire's.
namespace cumulus::wire {

/// Code, text, and the details of the grpc-status-details-bin trailer as payloads.
absl::Status status_from_grpc(const grpc::Status& status);

v1::ElementType to_wire(ElementType type);
v1::NonFinitePolicy to_wire(NonFinitePixels policy);

void encode_spec(ElementType type, const Shape& shape, v1::ArraySpec& spec);

struct Spec {
  ElementType type;
  Shape shape;
};
/// INTERNAL where the server sent an element type that this library does not know.
absl::StatusOr<Spec> decode_spec(const v1::ArraySpec& spec);

void encode_duration(absl::Duration duration, google::protobuf::Duration& out);
absl::Duration decode_duration(const google::protobuf::Duration& duration);

grpc::ByteBuffer serialize(const google::protobuf::MessageLite& message);

/// INTERNAL where the bytes are no such message.
absl::Status parse(grpc::ByteBuffer& bytes, google::protobuf::MessageLite& message);
absl::Status parse(const std::string& bytes, google::protobuf::MessageLite& message);
std::string text_of(const grpc::ByteBuffer& bytes);

}  // namespace cumulus::wire
