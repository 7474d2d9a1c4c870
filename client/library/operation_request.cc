#include "library/operation_request.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <utility>

#include "library/buffer_state.h"
#include "library/operation_access.h"
#include "library/wire.h"

namespace cumulus {
namespace {

constexpr std::size_t kMaxRequestBytes = std::size_t{4} << 20;  // the server's limit of one message

/// Finds the sources of `message` that are buffers.
void find_buffers(google::protobuf::Message& message, std::vector<v1::Source*>& found) {
  if (message.GetDescriptor() == v1::Source::descriptor()) {
    auto& source = static_cast<v1::Source&>(message);
    const std::string& buffer = source.has_encoded() ? source.encoded().buffer() : source.buffer();
    std::size_t place = 0;
    if (!absl::SimpleAtoi(buffer, &place)) return;
    found.resize(std::max(found.size(), place + 1));
    found[place] = &source;
    return;
  }
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      find_buffers(*reflection.MutableMessage(&message, field), found);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i)
      find_buffers(*reflection.MutableRepeatedMessage(&message, field, i), found);
  }
}

v1::RequestOptions encode_options(const std::string& session, const RunOptions& options) {
  v1::RequestOptions out;
  out.set_session(session);
  if (options.output == Placement::kInline) out.mutable_output()->mutable_inline_array();
  if (options.output_ttl.has_value())
    wire::encode_duration(*options.output_ttl, *out.mutable_output()->mutable_ttl());
  if (options.evictable) out.mutable_output()->set_evictable(true);
  out.set_request_id(options.call.request_id);
  out.set_validate_only(options.validate_only);
  out.set_priority(options.priority == Priority::kBatch ? v1::BATCH : v1::INTERACTIVE);
  return out;
}

/// The body with `options` in front, as field 1.
grpc::ByteBuffer with_options(const grpc::ByteBuffer& body, const v1::RequestOptions& options) {
  constexpr std::uint32_t kOptionsTag = 1 << 3 | 2;  // 2: length-delimited
  std::string front;
  {
    google::protobuf::io::StringOutputStream stream(&front);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.WriteTag(kOptionsTag);
    coded.WriteVarint32(static_cast<std::uint32_t>(options.ByteSizeLong()));
    options.SerializeToCodedStream(&coded);
  }
  std::vector<grpc::Slice> slices;
  (void)body.Dump(&slices);  // fails for no buffer that was made from slices
  slices.insert(slices.begin(), grpc::Slice(front));
  return {slices.data(), slices.size()};
}

}  // namespace

Operation::Request::Request(std::string its_method, const google::protobuf::Message& request,
                            std::vector<std::shared_ptr<BufferState>> its_buffers)
    : method(std::move(its_method)), buffers(std::move(its_buffers)) {
  if (buffers.empty()) {
    nameless_ = wire::serialize(request);
    return;
  }
  message_.reset(request.New());
  message_->CopyFrom(request);
  find_buffers(*message_, fields_);
}

grpc::ByteBuffer Operation::Request::body_with(const std::vector<std::string>& names) const {
  if (buffers.empty()) return nameless_;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i]->has_encoded()) {
      fields_[i]->mutable_encoded()->set_buffer(names[i]);
    } else {
      fields_[i]->set_buffer(names[i]);
    }
  }
  return wire::serialize(*message_);
}

absl::StatusOr<grpc::ByteBuffer> Operation::Request::encode(const std::vector<std::string>& names,
                                                            const std::string& session,
                                                            const RunOptions& options) const {
  grpc::ByteBuffer message = with_options(body_with(names), encode_options(session, options));
  if (message.Length() <= kMaxRequestBytes) return message;
  return absl::InvalidArgumentError(absl::StrCat(
      "the inputs sent within the call have ", message.Length(), " bytes, and at most ", kMaxRequestBytes,
      " fit: upload them to a session first (Session::upload) and name the buffers"));
}

Operation OperationAccess::make(std::string_view rpc, const google::protobuf::Message& request,
                                const OperationInputs& inputs) {
  return Operation(std::make_shared<Operation::Request>("/cumulus.v1.Operations/" + std::string(rpc), request,
                                                        inputs.buffers()));
}

std::string OperationInputs::add(std::shared_ptr<BufferState> buffer) {
  buffers_.push_back(std::move(buffer));
  return absl::StrCat(buffers_.size() - 1);
}

void OperationInputs::encode(const Source& source, v1::Source& out) {
  if (const auto* buffer = std::get_if<std::shared_ptr<BufferState>>(&source.value_)) {
    out.set_buffer(add(*buffer));
  } else if (const auto* array = std::get_if<ArrayView>(&source.value_)) {
    wire::encode_spec(array->type(), array->shape(), *out.mutable_inline_array()->mutable_spec());
    out.mutable_inline_array()->set_data(array->bytes().data(), array->bytes().size());
  } else if (const auto* made = std::get_if<StepOutput>(&source.value_)) {
    out.mutable_step_output()->set_step(made->step);
    out.mutable_step_output()->set_array(made->array);
  } else {
    const auto& image = std::get<EncodedImage>(source.value_);
    if (image.buffer != nullptr) {
      out.mutable_encoded()->set_buffer(add(BufferAccess::state(*image.buffer)));
    } else if (!image.path.empty()) {
      out.mutable_encoded()->set_path(image.path);
    } else {
      out.mutable_encoded()->set_data(image.file.data(), image.file.size());
    }
    out.mutable_encoded()->set_subimage(image.subimage);
    for (const std::string& channel : image.channels) out.mutable_encoded()->add_channels(channel);
  }
}

}  // namespace cumulus
