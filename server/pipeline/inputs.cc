#include "server/pipeline/inputs.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "server/pipeline/errors.h"

namespace cumulus::server {
namespace {

std::span<const std::byte> bytes_of(const std::string& data) {
  return {reinterpret_cast<const std::byte*>(data.data()), data.size()};
}

absl::StatusOr<BufferHandle> find_resident(const SourceField& source, const Session* session,
                                           Runtime& runtime) {
  const std::string field = absl::StrCat(std::string(source.field), ".buffer");
  if (session == nullptr) {
    return bad_field("options.session",
                     absl::StrCat("is empty; ", field, " needs the session that owns the buffer"));
  }
  const std::string& name = source.source->buffer();
  if (name.rfind(absl::StrCat(session->name, "/buffers/"), 0) != 0) {
    return bad_field(field, absl::StrCat("'", name, "' is not a buffer of the request's session ",
                                         session->name, "; one call uses the buffers of one session"));
  }
  return runtime.sessions.find_buffer(name, session->owner);
}

absl::StatusOr<ArrayShape> inline_shape(const SourceField& source, std::size_t max_bytes) {
  const v1::InlineArray& array = source.source->inline_array();
  const std::string field = absl::StrCat(std::string(source.field), ".inline_array");
  absl::StatusOr<ArrayShape> shape =
      parse_array_spec(array.spec(), absl::StrCat(std::string(field), ".spec"));
  if (!shape.ok()) return shape.status();
  if (array.data().size() != shape->bytes()) {
    return bad_field(absl::StrCat(std::string(field), ".data"),
                     absl::StrCat("has ", array.data().size(), " bytes; the spec says ", shape->bytes()));
  }
  if (array.data().size() > max_bytes) {
    return exhausted(absl::StrCat("request:", field),
                     absl::StrCat(std::string(field), " has ", array.data().size(), " bytes; at most ",
                                  max_bytes, " travel inline: upload a buffer"));
  }
  return shape;
}

}  // namespace

absl::StatusOr<CallInput> CallInput::resolve(const SourceField& source, const Session* session,
                                             Runtime& runtime) {
  CallInput input;
  input.field_ = source.field;
  const auto& limits = runtime.configuration.limits;
  switch (source.source->source_case()) {
    case v1::Source::kBuffer: {
      absl::StatusOr<BufferHandle> buffer = find_resident(source, session, runtime);
      if (!buffer.ok()) return buffer.status();
      input.buffer_ = *std::move(buffer);
      input.shape_ = input.buffer_->shape;
      return input;
    }
    case v1::Source::kInlineArray: {
      absl::StatusOr<ArrayShape> shape = inline_shape(source, limits.max_inline_bytes);
      if (!shape.ok()) return shape.status();
      input.shape_ = *std::move(shape);
      input.host_ = bytes_of(source.source->inline_array().data());
      return input;
    }
    case v1::Source::kEncoded:
      if (source.source->encoded().data().size() > limits.max_encoded_bytes) {
        return exhausted(
            absl::StrCat("request:", std::string(source.field), ".encoded"),
            absl::StrCat(std::string(source.field), ".encoded.data has ",
                         source.source->encoded().data().size(), " bytes; at most ", limits.max_encoded_bytes,
                         " travel in a request: decode the image and upload a buffer"));
      }
      input.encoded_ = &source.source->encoded();
      return input;
    case v1::Source::SOURCE_NOT_SET:
      return bad_field(source.field, "is missing; set buffer, inline_array or encoded");
  }
  return bad_field(source.field, "has an unknown kind of source; set buffer, inline_array or encoded");
}

absl::Status CallInput::decode(Runtime& runtime, const std::function<absl::Status()>& wanted) {
  const std::string field = absl::StrCat(std::string(field_), ".encoded");
  if (runtime.decode_helper == nullptr)
    return unsupported("IMAGES_UNSUPPORTED",
                       absl::StrCat(field, ": this server decodes no images; send an array"));
  Reservation working;
  const auto admit = [&](std::size_t bytes) {
    absl::StatusOr<Reservation> reserved = runtime.decoded_images->reserve(bytes);
    if (!reserved.ok()) return reserved.status();
    working = *std::move(reserved);
    return absl::OkStatus();
  };
  absl::StatusOr<DecodedImage> image =
      decode_image(*runtime.decode_helper, *encoded_, runtime.configuration.image_limits(), field,
                   {.admit = admit, .wanted = wanted});
  if (!image.ok()) return image.status();
  reservation_ = working.split(image->pixels.bytes());
  shape_ = std::move(image->shape);
  decoded_ = std::move(image->pixels);
  host_ = {decoded_.data(), decoded_.bytes()};
  encoded_ = nullptr;
  return absl::OkStatus();
}

InputArray CallInput::describe() const {
  if (buffer_ != nullptr) return {field_, shape_, buffer_->head};
  return {field_, shape_, host_.first(std::min(host_.size(), kHeadBytes))};
}

std::size_t CallInput::upload_bytes(Space space) const {
  return space == Space::kDevice && buffer_ == nullptr ? align_block(bytes()) : 0;
}

}  // namespace cumulus::server
