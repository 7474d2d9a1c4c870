#include "library/wire.h"

#include <absl/strings/cord.h>
#include <absl/strings/str_cat.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include "google/rpc/status.pb.h"

namespace cumulus::wire {

namespace {

/// gRPC tells of a host without an address in the words of the library that looks addresses up.
std::string text_of(const grpc::Status& status) {
  const std::string& text = status.error_message();
  const bool look_up =
      text.find("C-ares") != std::string::npos || text.find("DNS resolution") != std::string::npos;
  return look_up ? "no address is known for this name; check its spelling, and that HOST:PORT is meant"
                 : text;
}

}  // namespace

absl::Status status_from_grpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), text_of(status));
  google::rpc::Status details;
  if (details.ParseFromString(status.error_details())) {
    for (const auto& detail : details.details())
      result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return result;
}

v1::NonFinitePolicy to_wire(NonFinitePixels policy) {
  switch (policy) {
    case NonFinitePixels::kRefuse:
      return v1::REFUSE_NON_FINITE;
    case NonFinitePixels::kClamp:
      return v1::CLAMP_NON_FINITE;
    case NonFinitePixels::kKeep:
      return v1::KEEP_NON_FINITE;
  }
  return v1::NON_FINITE_POLICY_UNSPECIFIED;
}

v1::ElementType to_wire(ElementType type) {
  switch (type) {
    case ElementType::kUint8:
      return v1::UINT8;
    case ElementType::kUint16:
      return v1::UINT16;
    case ElementType::kUint32:
      return v1::UINT32;
    case ElementType::kUint64:
      return v1::UINT64;
    case ElementType::kInt32:
      return v1::INT32;
    case ElementType::kInt64:
      return v1::INT64;
    case ElementType::kFloat16:
      return v1::FLOAT16;
    case ElementType::kFloat32:
      return v1::FLOAT32;
    case ElementType::kFloat64:
      return v1::FLOAT64;
  }
  return v1::ELEMENT_TYPE_UNSPECIFIED;
}

void encode_spec(ElementType type, const Shape& shape, v1::ArraySpec& spec) {
  spec.set_element_type(to_wire(type));
  spec.mutable_shape()->Assign(shape.begin(), shape.end());
}

absl::StatusOr<Spec> decode_spec(const v1::ArraySpec& spec) {
  constexpr ElementType kTypes[] = {ElementType::kUint8,   ElementType::kUint16,  ElementType::kUint32,
                                    ElementType::kUint64,  ElementType::kInt32,   ElementType::kInt64,
                                    ElementType::kFloat16, ElementType::kFloat32, ElementType::kFloat64};
  for (const ElementType type : kTypes) {
    if (to_wire(type) == spec.element_type())
      return Spec{type, Shape(spec.shape().begin(), spec.shape().end())};
  }
  return absl::InternalError(
      absl::StrCat("the server sent an array of element type ", static_cast<int>(spec.element_type()),
                   ", which this client does not know: use a client of the server's version"));
}

void encode_duration(absl::Duration duration, google::protobuf::Duration& out) {
  out.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  out.set_nanos(static_cast<int>(absl::ToInt64Nanoseconds(duration)));
}

absl::Duration decode_duration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

grpc::ByteBuffer serialize(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return {&slice, 1};
}

namespace {

absl::Status no_such(const google::protobuf::MessageLite& message) {
  return absl::InternalError(absl::StrCat("the server's answer is no ", message.GetTypeName(),
                                          ": something that is not a Cumulus server answered"));
}

}  // namespace

absl::Status parse(grpc::ByteBuffer& bytes, google::protobuf::MessageLite& message) {
  grpc::ProtoBufferReader reader(&bytes);
  if (reader.status().ok() && message.ParseFromZeroCopyStream(&reader)) return absl::OkStatus();
  return no_such(message);
}

absl::Status parse(const std::string& bytes, google::protobuf::MessageLite& message) {
  return message.ParseFromString(bytes) ? absl::OkStatus() : no_such(message);
}

std::string text_of(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!bytes.Dump(&slices).ok()) return text;  // of no bytes
  for (const grpc::Slice& slice : slices)
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

}  // namespace cumulus::wire
