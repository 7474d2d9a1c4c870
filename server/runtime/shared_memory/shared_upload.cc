#include "server/runtime/shared_memory/shared_upload.h"

#include <algorithm>
#include <utility>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"
#include "server/runtime/exceptions.h"
#include "server/runtime/wire.h"

namespace cumulus::server {

SharedUpload::SharedUpload(Runtime& runtime, std::shared_ptr<SharedLink> link, Options options, Answer answer,
                           v1::Buffer* response)
    : SharedTransfer(runtime, std::move(link), std::move(options), std::move(answer)), response_(response) {}

// Not when the call ends: copies may still be on their way to the memory.
SharedUpload::~SharedUpload() {
  if (claimed_) target_->release(part());
}

void SharedUpload::begin(const v1::WriteSharedRequest& request) {
  run([&] { return start(request); });
}

absl::Status SharedUpload::start(const v1::WriteSharedRequest& request) {
  const v1::WriteSpec& spec = request.spec();
  if (const absl::Status status = check_request_id(spec.request_id(), "spec.request_id"); !status.ok())
    return status;
  set_request_id(spec.request_id());
  if (spec.session().empty())
    return bad_field("spec.session", "is empty; name the session that will own the buffer");
  if (!spec.upload().empty() || spec.part_bytes() != 0)
    return bad_field("spec.upload",
                     "and part_bytes are of streams; through shared memory one call brings an array");
  absl::StatusOr<UploadTarget::Description> description = UploadTarget::read_description(runtime(), spec);
  if (!description.ok()) return description.status();
  absl::StatusOr<SessionHandle> session = runtime().sessions.find_session(spec.session(), principal());
  if (!session.ok()) return session.status();
  if (absl::Status taken = take_region(); !taken.ok()) return taken;
  target_ = std::make_shared<UploadTarget>(runtime(), *std::move(session), *std::move(description));
  if (absl::Status prepared = prepare(); !prepared.ok()) return prepared;
  const std::size_t budget = target_->device().budget()->limit_bytes();
  const absl::Status allocated =
      target_->allocate([&](std::size_t bytes) { return announce(bytes, budget / 2); }, provider());
  if (!allocated.ok()) return allocated;
  if (absl::Status taken = take_head(); !taken.ok()) return taken;
  const absl::Status claimed =
      target_->claim(part(), std::static_pointer_cast<SharedUpload>(shared_from_this()));
  claimed_ = claimed.ok();
  if (!claimed.ok()) return claimed;
  return take_array();
}

absl::Status SharedUpload::take_head() {
  if (target_->device().space() == Space::kHost) return absl::OkStatus();
  try {
    head_ = target_->device().allocate_head();
  } catch (...) {
    return translate_exception(target_->device(), absl::InfiniteFuture());
  }
  return absl::OkStatus();
}

std::span<std::byte> SharedUpload::head() const {
  return {head_.data(), std::min(target_->total_bytes(), kHeadBytes)};
}

absl::Status SharedUpload::check_target() {
  const auto session = runtime().sessions.find_session(target_->session().name, principal());
  if (!session.ok()) return session.status();
  return target_->device().healthy() ? absl::OkStatus() : failed_device(target_->device());
}

absl::Status SharedUpload::check_room() {
  if (target_->total_bytes() <= region().bytes()) return absl::OkStatus();
  return bad_field("region", concat("has ", region().bytes(), " bytes; the array ",
                                    target_->description().shape.text(), " has ", target_->total_bytes()));
}

void SharedUpload::take_from(EarlyCopy& copy) {
  copy.give_to({target_->memory(), head_,
                [self = shared_from_this(), this](const absl::Status& status) { take_whole(status); }});
}

void SharedUpload::take_whole(const absl::Status& copied) {
  if (!copied.ok()) {
    end(copied);
    return;
  }
  count_bytes(target_->total_bytes());
  complete();
}

void SharedUpload::complete() {
  const std::byte* const data = target_->memory().host_data();
  target_->keep_head(0, {data != nullptr ? data : head_.data(), head().size()});
  target_->complete(part());
}

bool SharedUpload::answer(const ResidentBuffer& buffer) {
  use_call([&] { write_buffer(buffer, *response_); });
  return end(absl::OkStatus());
}

}  // namespace cumulus::server
