#include "cumulus/operation.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstring>
#include <utility>

#include "cumulus/session.h"
#include "cumulus/v1/array.pb.h"
#include "library/operation_access.h"
#include "library/run_operation.h"
#include "library/transfer.h"

namespace cumulus {

struct Result::Entry {
  std::string name;
  std::variant<Buffer, Array> value;
};

Result::Result() = default;
Result::~Result() = default;
Result::Result(Result&&) noexcept = default;
Result& Result::operator=(Result&&) noexcept = default;

/// From the wire; buffers belong to `session`.
class ResultDecoder {
 public:
  static absl::StatusOr<Result> decode(grpc::ByteBuffer& bytes,
                                       const std::shared_ptr<SessionState>& session) {
    v1::OperationResult answer;
    if (absl::Status parsed = wire::parse(bytes, answer); !parsed.ok()) return parsed;
    Result result;
    const v1::Timings& timings = answer.timings();
    result.timings_ = {wire::decode_duration(timings.queue()),
                       wire::decode_duration(timings.input()),
                       wire::decode_duration(timings.compute()),
                       wire::decode_duration(timings.output()),
                       timings.device(),
                       wire::decode_duration(timings.decode()),
                       timings.encoded_bytes()};
    // Every buffer gets its owner before an error can be answered, so that none is left behind.
    absl::Status first_problem;
    for (const v1::NamedArray& array : answer.arrays()) {
      first_problem.Update(array.has_buffer() ? add_buffer(array, session, result)
                                              : add_inline(array, result));
    }
    if (!first_problem.ok()) return first_problem;
    return result;
  }

 private:
  static absl::Status add_buffer(const v1::NamedArray& array, const std::shared_ptr<SessionState>& session,
                                 Result& result) {
    if (session == nullptr) {
      return absl::InternalError("the server kept an output as a buffer although the call named no session");
    }
    absl::StatusOr<Buffer> buffer = BufferAccess::make(session, array.buffer());
    if (!buffer.ok()) return buffer.status();
    result.entries_.push_back({array.name(), *std::move(buffer)});
    return absl::OkStatus();
  }

  static absl::Status add_inline(const v1::NamedArray& named, Result& result) {
    absl::StatusOr<wire::Spec> spec = wire::decode_spec(named.inline_array().spec());
    if (!spec.ok()) return spec.status();
    absl::StatusOr<Array> array = Array::allocate(spec->type, std::move(spec->shape));
    if (!array.ok()) return array.status();
    const std::string& data = named.inline_array().data();
    if (data.size() != array->bytes().size()) {
      return absl::InternalError(absl::StrCat("the server sent ", data.size(), " bytes for the array '",
                                              named.name(), "' of ", array->bytes().size()));
    }
    std::memcpy(array->mutable_bytes().data(), data.data(), data.size());
    result.entries_.push_back({named.name(), *std::move(array)});
    return absl::OkStatus();
  }
};

std::vector<std::string> Result::names() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) names.push_back(entry.name);
  return names;
}

absl::StatusOr<Result::Entry*> Result::find(std::string_view name) {
  for (Entry& entry : entries_) {
    if (entry.name == name) return &entry;
  }
  return absl::NotFoundError(absl::StrCat("the result has no array '", std::string(name),
                                          "'; it has: ", absl::StrJoin(names(), ", ")));
}

const Buffer* Result::buffer(std::string_view name) const {
  for (const Entry& entry : entries_) {
    if (entry.name == name) return std::get_if<Buffer>(&entry.value);
  }
  return nullptr;
}

absl::StatusOr<Buffer> Result::take_buffer(std::string_view name) {
  const absl::StatusOr<Entry*> entry = find(name);
  if (!entry.ok()) return entry.status();
  Buffer* resident = std::get_if<Buffer>(&(*entry)->value);
  if (resident == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("the array '", std::string(name),
                     "' came inline: run the operation of a session with Placement::kDefault"));
  }
  Buffer taken = std::move(*resident);
  entries_.erase(entries_.begin() + (*entry - entries_.data()));
  return taken;
}

absl::StatusOr<Array> Result::fetch(std::string_view name, const CallOptions& options) {
  const absl::StatusOr<Entry*> entry = find(name);
  if (!entry.ok()) return entry.status();
  if (Array* array = std::get_if<Array>(&(*entry)->value)) {
    Array taken = std::move(*array);
    entries_.erase(entries_.begin() + (*entry - entries_.data()));
    return taken;
  }
  const Buffer& buffer = std::get<Buffer>((*entry)->value);
  absl::StatusOr<Array> array = Array::allocate(buffer.type(), buffer.shape());
  if (!array.ok()) return array;
  DownloadOptions download;
  download.call = options;
  if (absl::Status status = read_buffer(*BufferAccess::session(buffer)->connection, buffer.name(),
                                        array->mutable_bytes(), download);
      !status.ok()) {
    return status;
  }
  return array;
}

Source::Source(const Buffer& buffer) : value_(BufferName{buffer.name()}) {}

Operation OperationAccess::make(std::string_view rpc, const google::protobuf::MessageLite& request) {
  return Operation(std::make_shared<Operation::Request>(
      Operation::Request{"/cumulus.v1.Operations/" + std::string(rpc), wire::serialize(request)}));
}

void SourceEncoder::encode(const Source& source, v1::Source& out) {
  if (const auto* buffer = std::get_if<Source::BufferName>(&source.value_)) {
    out.set_buffer(buffer->name);
  } else if (const auto* array = std::get_if<ArrayView>(&source.value_)) {
    wire::encode_spec(array->type(), array->shape(), *out.mutable_inline_array()->mutable_spec());
    out.mutable_inline_array()->set_data(array->bytes().data(), array->bytes().size());
  } else {
    const auto& image = std::get<EncodedImage>(source.value_);
    if (image.buffer != nullptr) {
      out.mutable_encoded()->set_buffer(image.buffer->name());
    } else if (!image.path.empty()) {
      out.mutable_encoded()->set_path(image.path);
    } else {
      out.mutable_encoded()->set_data(image.file.data(), image.file.size());
    }
    out.mutable_encoded()->set_subimage(image.subimage);
    for (const std::string& channel : image.channels) out.mutable_encoded()->add_channels(channel);
  }
}

namespace {

constexpr std::size_t kMaxRequestBytes = std::size_t{4} << 20;  // the server's limit of one message

v1::RequestOptions encode_options(const SessionState* session, const RunOptions& options) {
  v1::RequestOptions out;
  if (session != nullptr) out.set_session(session->name);
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

void run_to_callback(Connection& connection, std::shared_ptr<SessionState> session,
                     const Operation& operation, const RunOptions& options,
                     std::function<void(absl::StatusOr<Result>)> done) {
  const auto& request = OperationAccess::request(operation);
  const grpc::ByteBuffer message = with_options(request.body, encode_options(session.get(), options));
  if (message.Length() > kMaxRequestBytes) {
    done(absl::InvalidArgumentError(absl::StrCat(
        "the inputs sent within the call have ", message.Length(), " bytes, and at most ", kMaxRequestBytes,
        " fit: upload them to a session first (Session::upload) and name the buffers")));
    return;
  }
  connection.call(
      request.method, message, options.call,
      [session = std::move(session), done = std::move(done)](absl::StatusOr<grpc::ByteBuffer> answer) {
        if (!answer.ok()) {
          done(answer.status());
        } else {
          done(ResultDecoder::decode(*answer, session));
        }
      });
}

std::future<absl::StatusOr<Result>> run_to_future(Connection& connection,
                                                  std::shared_ptr<SessionState> session,
                                                  const Operation& operation, const RunOptions& options) {
  const auto promise = std::make_shared<std::promise<absl::StatusOr<Result>>>();
  run_to_callback(connection, std::move(session), operation, options,
                  [promise](absl::StatusOr<Result> result) { promise->set_value(std::move(result)); });
  return promise->get_future();
}

}  // namespace cumulus
