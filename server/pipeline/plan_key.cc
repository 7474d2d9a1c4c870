#include "server/pipeline/plan_key.h"

#include <google/protobuf/descriptor.h>

#include <bit>
#include <cstdint>
#include <vector>

namespace cumulus::server {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void append(std::string& key, std::uint64_t number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void append(std::string& key, const std::string& text) {
  append(key, text.size());
  key += text;
}

/// False where there is no key of such a field.
bool append_field(std::string& key, const Message& request, const FieldDescriptor& field) {
  const google::protobuf::Reflection& values = *request.GetReflection();
  append(key, static_cast<std::uint64_t>(field.number()));
  if (field.is_repeated()) return false;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      // Whether there is such a source says something; what it has, its shape does.
      if (field.message_type() != v1::Source::descriptor())
        append(key, values.GetMessage(request, &field).SerializeAsString());
      return true;
    case FieldDescriptor::CPPTYPE_INT32:
      append(key, static_cast<std::uint64_t>(values.GetInt32(request, &field)));
      return true;
    case FieldDescriptor::CPPTYPE_INT64:
      append(key, static_cast<std::uint64_t>(values.GetInt64(request, &field)));
      return true;
    case FieldDescriptor::CPPTYPE_ENUM:
      append(key, static_cast<std::uint64_t>(values.GetEnumValue(request, &field)));
      return true;
    case FieldDescriptor::CPPTYPE_BOOL:
      append(key, static_cast<std::uint64_t>(values.GetBool(request, &field)));
      return true;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      append(key, std::bit_cast<std::uint64_t>(values.GetDouble(request, &field)));
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string plan_key(const Message& request, std::span<const InputArray> inputs) {
  std::string key;
  std::vector<const FieldDescriptor*> fields;
  request.GetReflection()->ListFields(request, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->message_type() == v1::RequestOptions::descriptor()) continue;
    if (!append_field(key, request, *field)) return {};
  }
  for (const InputArray& input : inputs) {
    append(key, static_cast<std::uint64_t>(input.shape.type));
    append(key, input.shape.extents.size());
    for (const std::int64_t extent : input.shape.extents) append(key, static_cast<std::uint64_t>(extent));
  }
  return key;
}

}  // namespace cumulus::server
