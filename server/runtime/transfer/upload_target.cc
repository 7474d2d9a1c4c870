#include "server/runtime/transfer/upload_target.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/steady_time.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"
#include "server/runtime/exceptions.h"
#include "server/runtime/wire.h"

namespace cumulus::server {
namespace {

constexpr absl::Duration kRetryAfter = absl::Milliseconds(50);

absl::Status too_late() {
  return unavailable("PART_UNDER_WAY", "the upload that this part belongs to has just become complete",
                     kRetryAfter);
}

absl::Status under_way(const Part& part) {
  return unavailable("PART_UNDER_WAY",
                     concat("another stream brings the bytes ", part.begin, " to ", part.end,
                            " too; it is ended, then this part may come again"),
                     kRetryAfter);
}

}  // namespace

UploadTarget::UploadTarget(Runtime& runtime, SessionHandle session, Description description)
    : runtime_(runtime),
      session_(std::move(session)),
      description_(std::move(description)),
      total_bytes_(description_.shape.bytes()) {
  buffer_.shape = description_.shape;
  buffer_.ttl = description_.ttl;
  buffer_.evictable = description_.evictable;
}

absl::StatusOr<UploadTarget::Description> UploadTarget::read_description(const Runtime& runtime,
                                                                         const v1::WriteSpec& spec) {
  absl::StatusOr<ArrayShape> shape = parse_array_spec(spec.spec(), "spec.spec");
  if (!shape.ok()) return shape.status();
  const auto& limits = runtime.configuration.limits;
  const absl::StatusOr<absl::Duration> ttl =
      checked_ttl(spec.has_ttl(), spec.ttl(), "spec.ttl", absl::InfiniteDuration(), limits.max_ttl);
  if (!ttl.ok()) return ttl.status();
  if (shape->bytes() > limits.max_buffer_bytes) {
    return exhausted("limits:max_buffer_bytes",
                     concat("the array ", shape->text(), " has ", shape->bytes(),
                            " bytes; the server allows ", limits.max_buffer_bytes, " (max_buffer_bytes)"));
  }
  return Description{*std::move(shape), *ttl, spec.evictable()};
}

absl::Status UploadTarget::allocate(const Announce& announce, const std::function<BufferMemory()>& provide) {
  const std::lock_guard lock(mutex_);
  if (!allocated_) allocated_ = allocate_once(announce, provide);
  return *allocated_;
}

absl::Status UploadTarget::allocate_once(const Announce& announce,
                                         const std::function<BufferMemory()>& provide) {
  absl::StatusOr<TransferShares::Announcement> announced = announce(total_bytes_);
  if (!announced.ok()) return announced.status();
  announcement_ = *std::move(announced);
  if (!device().healthy()) return failed_device(device());
  absl::StatusOr<Admission> admission =
      runtime_.sessions.admit_upload(device(), *session_, align_block(total_bytes_));
  if (!admission.ok()) return admission.status();
  buffer_.admission = *std::move(admission);
  try {
    buffer_.memory = provide ? provide() : device().allocate(total_bytes_);
    buffer_.head.resize(std::min(total_bytes_, kHeadBytes));
  } catch (...) {
    return translate_exception(device(), absl::InfiniteFuture());
  }
  return absl::OkStatus();
}

absl::Status UploadTarget::claim(const Part& part, const std::shared_ptr<UploadStream>& stream) {
  std::shared_ptr<UploadStream> older;
  {
    const std::lock_guard lock(mutex_);
    if (published_) return too_late();
    const auto next = claims_.lower_bound(part.begin);
    const auto before = next != claims_.begin() ? std::prev(next) : claims_.end();
    const bool same = next != claims_.end() && Part{next->first, next->second.end} == part;
    const auto overlapped = before != claims_.end() && before->second.end > part.begin ? before
                            : next != claims_.end() && next->first < part.end          ? next
                                                                                       : claims_.end();
    if (!same && overlapped != claims_.end()) {
      return bad_field("write_offset",
                       concat("and part_bytes say that the bytes ", part.begin, " to ", part.end,
                              " come; another stream brings the bytes ", overlapped->first, " to ",
                              overlapped->second.end, ", and parts may not overlap"));
    }
    if (!same) {
      claims_.emplace(part.begin, Claim{part.end, stream});
      return absl::OkStatus();
    }
    older = next->second.stream.lock();
  }
  if (older != nullptr) older->make_way();
  return under_way(part);
}

void UploadTarget::release(const Part& part) {
  const std::lock_guard lock(mutex_);
  claims_.erase(part.begin);
}

void UploadTarget::complete(const Part& part) {
  const std::vector<std::shared_ptr<UploadStream>> streams = take_streams_if_complete(part);
  if (!streams.empty()) publish(streams);
}

std::vector<std::shared_ptr<UploadStream>> UploadTarget::take_streams_if_complete(const Part& part) {
  const std::lock_guard lock(mutex_);
  claims_.at(part.begin).complete = true;
  std::size_t bytes = 0;
  for (const auto& [begin, claim] : claims_) bytes += claim.complete ? claim.end - begin : 0;
  if (bytes < total_bytes_) return {};
  published_ = true;
  std::vector<std::shared_ptr<UploadStream>> streams;
  for (const auto& [begin, claim] : claims_) {
    if (std::shared_ptr<UploadStream> stream = claim.stream.lock()) streams.push_back(std::move(stream));
  }
  return streams;
}

bool UploadTarget::over() const {
  const std::lock_guard lock(mutex_);
  return published_ || (allocated_ && !allocated_->ok());
}

void UploadTarget::publish(const std::vector<std::shared_ptr<UploadStream>>& streams) {
  announcement_ = {};  // before the answer, after which the client may announce as much again
  const absl::StatusOr<BufferHandle> buffer = runtime_.sessions.add_buffer(*session_, std::move(buffer_));
  bool told = false;
  for (const std::shared_ptr<UploadStream>& stream : streams) {
    if (buffer.ok()) {
      told |= stream->answer(**buffer);
    } else {
      stream->fail(buffer.status());
    }
  }
  // Who has cancelled meanwhile does not learn the buffer's name.
  if (buffer.ok() && !told) (void)runtime_.sessions.delete_buffer((*buffer)->name, session_->owner);
}

void UploadTarget::keep_head(std::size_t offset, std::span<const std::byte> data) {
  if (offset >= buffer_.head.size()) return;
  std::memcpy(buffer_.head.data() + offset, data.data(), std::min(data.size(), buffer_.head.size() - offset));
}

void UploadTarget::count_bytes(std::size_t bytes) {
  moved_bytes_ += bytes;
  moved_at_ = absl::ToUnixNanos(steady_now());
}

std::shared_ptr<UploadTarget> JoinedUploads::find_or_make(const std::string& session, const std::string& id,
                                                          const Make& make) {
  const std::lock_guard lock(mutex_);
  std::erase_if(targets_, [](const auto& each) { return each.second.expired(); });
  std::weak_ptr<UploadTarget>& known = targets_[{session, id}];
  std::shared_ptr<UploadTarget> target = known.lock();
  if (target == nullptr || target->over()) {
    target = make();
    known = target;
  }
  return target;
}

}  // namespace cumulus::server
