#include "cumulus/operation.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <cstring>
#include <utility>

#include "cumulus/session.h"
#include "cumulus/v1/array.pb.h"
#include "library/buffer_state.h"
#include "library/result_decoder.h"

namespace cumulus {

struct Result::Entry {
  std::string name;
  std::variant<Buffer, Array> value;
};

Result::Result() = default;
Result::~Result() = default;
Result::Result(Result&&) noexcept = default;
Result& Result::operator=(Result&&) noexcept = default;

class ResultDecoder {
 public:
  ResultDecoder(const std::shared_ptr<SessionState>& session, const Lease& lease,
                std::shared_ptr<Production> production)
      : session_(session), lease_(lease), production_(std::move(production)) {}

  absl::StatusOr<Result> decode(const v1::OperationResult& answer) {
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
      first_problem.Update(array.has_buffer() ? add_buffer(array, result) : add_inline(array, result));
    }
    if (!first_problem.ok()) return first_problem;
    return result;
  }

 private:
  absl::Status add_buffer(const v1::NamedArray& array, Result& result) {
    if (session_ == nullptr) {
      return absl::InternalError("the server kept an output as a buffer although the call named no session");
    }
    absl::StatusOr<Buffer> buffer = BufferAccess::make(session_, lease_, array.buffer());
    if (!buffer.ok()) return buffer.status();
    if (production_ != nullptr) {
      BufferAccess::state(*buffer)->production = production_;
      production_->outputs.emplace_back(array.name(), BufferAccess::state(*buffer));
    }
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

  const std::shared_ptr<SessionState>& session_;
  const Lease& lease_;
  const std::shared_ptr<Production> production_;
};

absl::StatusOr<Result> decode_result(grpc::ByteBuffer& bytes, const std::shared_ptr<SessionState>& session,
                                     const Lease& lease, std::shared_ptr<Production> production) {
  v1::OperationResult answer;
  if (absl::Status parsed = wire::parse(bytes, answer); !parsed.ok()) return parsed;
  return ResultDecoder(session, lease, std::move(production)).decode(answer);
}

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
  const absl::Status status = download_into(BufferAccess::state(buffer), array->mutable_bytes(), download);
  if (!status.ok()) return status;
  return array;
}

Source::Source(const Buffer& buffer) : value_(BufferAccess::state(buffer)) {}

}  // namespace cumulus
