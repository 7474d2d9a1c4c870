#include "server/pipeline/inputs.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "server/pipeline/errors.h"

namespace cumulus::server {
namespace {

std::span<const std::byte> bytes_of(const std::string& data) {
  return {reinterpret_cast<const std::byte*>(data.data()), data.size()};
}

/// The buffer of that name, which `field` has.
absl::StatusOr<BufferHandle> find_resident(const std::string& name, const std::string& field,
                                           const Session* session, Runtime& runtime) {
  if (session == nullptr) {
    return bad_field("options.session",
                     absl::StrCat("is empty; ", field, " needs the session that owns the buffer"));
  }
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
                                  max_bytes, " (max_inline_bytes) travel inline: upload a buffer"));
  }
  return shape;
}

absl::Status check_path(const Runtime& runtime, const Principal& caller, const std::string& field) {
  if (runtime.file_root == nullptr) {
    return bad_field(field,
                     "names a file, and this server reads none (file_root in its configuration); send or "
                     "upload the file's bytes");
  }
  if (runtime.configuration.file_root.role != Role::kAdmin) return absl::OkStatus();
  return require_admin(caller, "naming files of the server");
}

/// An image file's bytes in host memory, and what they are counted with.
struct HostFile {
  std::string_view bytes;
  HostMemory copy;  // empty: the bytes are somebody else's
  Reservation counted;
};

/// Waits for the copy.
absl::Status copy_to_host(Device& device, const ResidentBuffer& buffer, HostMemory& to) {
  const std::size_t size = buffer.shape.bytes();
  to = allocate_host(size);
  const auto copied = std::make_shared<std::promise<absl::Status>>();
  device.copy_out(buffer.memory, 0, {to.data(), size},
                  [copied](absl::Status status) { copied->set_value(std::move(status)); });
  return copied->get_future().get();
}

std::string_view text_of(const std::byte* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// The decoder gets a copy of its own: it counts, as does one that is made here.
absl::Status count(Runtime& runtime, std::size_t bytes, HostFile& file) {
  absl::StatusOr<Reservation> reserved = runtime.decoded_images->reserve(bytes);
  if (!reserved.ok()) return reserved.status();
  file.counted = *std::move(reserved);
  return absl::OkStatus();
}

absl::Status fetch_buffer(Runtime& runtime, Device& device, const ResidentBuffer& buffer, HostFile& file) {
  const std::size_t size = buffer.shape.bytes();
  const std::byte* here = buffer.memory.host_data();
  if (const absl::Status counted = count(runtime, here != nullptr ? size : 2 * size, file); !counted.ok())
    return counted;
  if (here == nullptr) {
    if (const absl::Status copied = copy_to_host(device, buffer, file.copy); !copied.ok()) return copied;
    here = file.copy.data();
  }
  file.bytes = text_of(here, size);
  return absl::OkStatus();
}

absl::Status fetch_path(Runtime& runtime, const std::string& path, const std::string& field, HostFile& file) {
  absl::StatusOr<HostMemory> read =
      runtime.file_root->read(path, field, [&](std::size_t size) { return count(runtime, 2 * size, file); });
  if (!read.ok()) return read.status();
  file.copy = *std::move(read);
  file.bytes = text_of(file.copy.data(), file.copy.bytes());
  return absl::OkStatus();
}

}  // namespace

absl::Status CallInput::resolve_encoded(const SourceField& source, const Session* session,
                                        const Principal& caller, Runtime& runtime) {
  const v1::EncodedImage& image = source.source->encoded();
  const std::string field = absl::StrCat(std::string(source.field), ".encoded");
  encoded_ = &image;
  if (image.has_buffer()) {
    absl::StatusOr<BufferHandle> buffer =
        find_resident(image.buffer(), absl::StrCat(field, ".buffer"), session, runtime);
    if (!buffer.ok()) return buffer.status();
    encoded_buffer_ = *std::move(buffer);
    if (encoded_buffer_->shape.type == v1::UINT8) return absl::OkStatus();
    return bad_field(absl::StrCat(field, ".buffer"),
                     absl::StrCat("holds ", encoded_buffer_->shape.text(),
                                  "; an image file is an array of UINT8, its bytes as they are"));
  }
  if (image.has_path()) return check_path(runtime, caller, absl::StrCat(field, ".path"));
  const std::size_t most = runtime.configuration.limits.max_encoded_bytes;
  if (image.data().size() <= most) return absl::OkStatus();
  return exhausted(
      absl::StrCat("request:", field),
      absl::StrCat(
          field, ".data has ", image.data().size(), " bytes; at most ", most,
          " (max_encoded_bytes) travel in a request: upload the file as an array of UINT8, and name that "
          "(encoded.buffer)"));
}

absl::StatusOr<CallInput> CallInput::resolve(const SourceField& source, const Session* session,
                                             const Principal& caller, Runtime& runtime) {
  CallInput input;
  input.field_ = source.field;
  const auto& limits = runtime.configuration.limits;
  switch (source.source->source_case()) {
    case v1::Source::kBuffer: {
      absl::StatusOr<BufferHandle> buffer = find_resident(
          source.source->buffer(), absl::StrCat(std::string(source.field), ".buffer"), session, runtime);
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
    case v1::Source::kEncoded: {
      const absl::Status encoded = input.resolve_encoded(source, session, caller, runtime);
      if (!encoded.ok()) return encoded;
      return input;
    }
    case v1::Source::kStepOutput:
      return bad_field(absl::StrCat(std::string(source.field), ".step_output"),
                       "is set, and only steps of RunPipeline read what others made; set buffer, "
                       "inline_array or encoded");
    case v1::Source::SOURCE_NOT_SET:
      return bad_field(source.field, "is missing; set buffer, inline_array or encoded");
  }
  return bad_field(source.field, "has an unknown kind of source; set buffer, inline_array or encoded");
}

absl::Status CallInput::decode(Runtime& runtime, Device& device,
                               const std::function<absl::Status()>& wanted) {
  const std::string field = absl::StrCat(std::string(field_), ".encoded");
  if (runtime.decode_helper == nullptr)
    return unsupported("IMAGES_UNSUPPORTED",
                       absl::StrCat(field, ": this server decodes no images; send an array"));
  HostFile file{encoded_->data(), {}, {}};
  std::string_view named_by = "data";
  absl::Status fetched;
  if (encoded_buffer_ != nullptr) {
    named_by = "buffer";
    fetched = fetch_buffer(runtime, device, *encoded_buffer_, file);
  } else if (encoded_->has_path()) {
    named_by = "path";
    fetched = fetch_path(runtime, encoded_->path(), absl::StrCat(field, ".path"), file);
  }
  if (!fetched.ok()) return fetched;
  Reservation working;
  const auto admit = [&](std::size_t bytes) {
    absl::StatusOr<Reservation> reserved = runtime.decoded_images->reserve(bytes);
    if (!reserved.ok()) return reserved.status();
    working = *std::move(reserved);
    return absl::OkStatus();
  };
  absl::StatusOr<DecodedImage> image =
      decode_image(*runtime.decode_helper, *encoded_, {file.bytes, named_by},
                   runtime.configuration.image_limits(), field, {.admit = admit, .wanted = wanted});
  if (!image.ok()) return image.status();
  reservation_ = working.split(image->pixels.bytes());
  shape_ = std::move(image->shape);
  decoded_ = std::move(image->pixels);
  host_ = {decoded_.data(), decoded_.bytes()};
  encoded_bytes_ = file.bytes.size();
  encoded_ = nullptr;
  encoded_buffer_.reset();
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
