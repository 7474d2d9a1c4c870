#include "server/services/sessions_service.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "proto/steady_time.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"
#include "server/runtime/instance.h"
#include "server/runtime/wire.h"
#include "server/services/answer_at_once.h"

namespace cumulus::server {
namespace {

constexpr std::int32_t kDefaultPage = 100;
constexpr std::int32_t kMaxPage = 1000;
constexpr int kMaxBatch = 1000;

bool is_uuid(std::string_view text) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  return text.size() == kForm.size() &&
         std::equal(text.begin(), text.end(), kForm.begin(), [](char c, char form) {
           return form == '-' ? c == '-'
                              : absl::ascii_isxdigit(static_cast<unsigned char>(c)) &&
                                    !absl::ascii_isupper(static_cast<unsigned char>(c));
         });
}

}  // namespace

grpc::ServerUnaryReactor* SessionsService::CreateSession(Context* context,
                                                         const v1::CreateSessionRequest* request,
                                                         v1::Session* response) {
  return answer_at_once(runtime_, *context, "CreateSession",
                        [&](const Principal& caller) { return create(*request, caller, *response); });
}

grpc::ServerUnaryReactor* SessionsService::GetSession(Context* context, const v1::GetSessionRequest* request,
                                                      v1::Session* response) {
  return answer_here(context, "GetSession",
                     [&](const Principal& caller) { return get(*request, caller, *response); });
}

grpc::ServerUnaryReactor* SessionsService::DeleteSession(Context* context,
                                                         const v1::DeleteSessionRequest* request,
                                                         google::protobuf::Empty* /*response*/) {
  return answer_here(context, "DeleteSession", [&](const Principal& caller) {
    return runtime_.sessions.delete_session(request->name(), caller);
  });
}

grpc::ServerUnaryReactor* SessionsService::GetBuffer(Context* context, const v1::GetBufferRequest* request,
                                                     v1::Buffer* response) {
  return answer_here(context, "GetBuffer",
                     [&](const Principal& caller) { return get_buffer(*request, caller, *response); });
}

grpc::ServerUnaryReactor* SessionsService::ListBuffers(Context* context,
                                                       const v1::ListBuffersRequest* request,
                                                       v1::ListBuffersResponse* response) {
  return answer_here(context, "ListBuffers",
                     [&](const Principal& caller) { return list(*request, caller, *response); });
}

grpc::ServerUnaryReactor* SessionsService::DeleteBuffer(Context* context,
                                                        const v1::DeleteBufferRequest* request,
                                                        google::protobuf::Empty* /*response*/) {
  return answer_here(context, "DeleteBuffer",
                     [&](const Principal& caller) { return delete_buffer(*request, caller); });
}

grpc::ServerUnaryReactor* SessionsService::BatchDeleteBuffers(Context* context,
                                                              const v1::BatchDeleteBuffersRequest* request,
                                                              google::protobuf::Empty* /*response*/) {
  return answer_here(context, "BatchDeleteBuffers",
                     [&](const Principal& caller) { return delete_buffers(*request, caller); });
}

grpc::ServerUnaryReactor* SessionsService::answer_here(
    Context* context, std::string_view rpc, const std::function<absl::Status(const Principal&)>& call) const {
  return answer_at_once(runtime_, *context, rpc, [&](const Principal& caller) {
    const absl::Status instance = check_instance(*context, runtime_.instance);
    return instance.ok() ? call(caller) : instance;
  });
}

absl::Status SessionsService::create(const v1::CreateSessionRequest& request, const Principal& owner,
                                     v1::Session& response) {
  const auto& limits = runtime_.configuration.limits;
  if (const absl::Status admitted = runtime_.drain.admits(); !admitted.ok()) return admitted;
  if (!is_uuid(request.session_id())) {
    return bad_field("session_id",
                     absl::StrCat("is '", std::string(cut_text(request.session_id(), 64)),
                                  "'; make a UUID of the form "
                                  "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx in lower-case hexadecimal"));
  }
  const absl::StatusOr<absl::Duration> ttl =
      checked_ttl(request.has_ttl(), request.ttl(), "ttl", limits.default_ttl, limits.max_ttl);
  if (!ttl.ok()) return ttl.status();
  // Held until the session counts, or sessions that begin at once would all have the same device.
  const std::lock_guard lock(placement_mutex_);
  const absl::StatusOr<DeviceSlot*> slot = choose_device(request.device());
  if (!slot.ok()) return slot.status();
  const std::size_t max_quota = owner.limits.session_quota_within(
      limits.session_quota_bytes > 0 ? limits.session_quota_bytes : (*slot)->device->budget()->limit_bytes());
  if (request.quota_bytes() < 0 || static_cast<std::size_t>(request.quota_bytes()) > max_quota) {
    return bad_field("quota_bytes", absl::StrCat("is ", request.quota_bytes(), "; 0 (the default) to ",
                                                 max_quota, " (session_quota_bytes) is right"));
  }
  const std::size_t quota =
      request.quota_bytes() > 0 ? static_cast<std::size_t>(request.quota_bytes()) : max_quota;
  const absl::StatusOr<SessionHandle> session =
      runtime_.sessions.create_session({request.session_id(), *slot, *ttl, quota, owner});
  if (!session.ok()) return session.status();
  write_session(**session, response);
  return absl::OkStatus();
}

absl::StatusOr<DeviceSlot*> SessionsService::choose_device(const std::string& name) {
  if (name.empty()) return runtime_.place_session();
  if (DeviceSlot* slot = runtime_.find_device(name)) {
    if (slot->device->healthy()) return slot;
    return failed_device(*slot->device);
  }
  const auto append_name = [](std::string* out, const DeviceSlot& slot) { out->append(slot.device->name()); };
  return bad_field("device",
                   absl::StrCat("'", name, "' is not here; this server has ",
                                absl::StrJoin(runtime_.devices, ", ", append_name), " (or leave it empty)"));
}

absl::Status SessionsService::get(const v1::GetSessionRequest& request, const Principal& caller,
                                  v1::Session& response) {
  const absl::StatusOr<SessionHandle> session = runtime_.sessions.find_session(request.name(), caller);
  if (!session.ok()) return session.status();
  write_session(**session, response);
  return absl::OkStatus();
}

absl::Status SessionsService::get_buffer(const v1::GetBufferRequest& request, const Principal& caller,
                                         v1::Buffer& response) {
  const absl::StatusOr<BufferHandle> buffer = runtime_.sessions.find_buffer(request.name(), caller);
  if (!buffer.ok()) return buffer.status();
  write_buffer(**buffer, response);
  return absl::OkStatus();
}

absl::Status SessionsService::list(const v1::ListBuffersRequest& request, const Principal& caller,
                                   v1::ListBuffersResponse& response) {
  if (request.page_size() < 0) {
    return bad_field("page_size", absl::StrCat("is ", request.page_size(), "; 0 means ", kDefaultPage,
                                               ", larger values up to ", kMaxPage, " are taken as they are"));
  }
  const std::int32_t page_size =
      request.page_size() == 0 ? kDefaultPage : std::min(request.page_size(), kMaxPage);
  const auto page = runtime_.sessions.list_buffers(request.parent(), static_cast<std::size_t>(page_size),
                                                   request.page_token(), caller);
  if (!page.ok()) return page.status();
  for (const BufferHandle& buffer : page->buffers) write_buffer(*buffer, *response.add_buffers());
  response.set_next_page_token(page->next_page_token);
  return absl::OkStatus();
}

absl::Status SessionsService::delete_buffer(const v1::DeleteBufferRequest& request, const Principal& caller) {
  const absl::Status status = runtime_.sessions.delete_buffer(request.name(), caller);
  return absl::IsNotFound(status) && request.allow_missing() ? absl::OkStatus() : status;
}

absl::Status SessionsService::delete_buffers(const v1::BatchDeleteBuffersRequest& request,
                                             const Principal& caller) {
  if (request.names().empty() || request.names_size() > kMaxBatch) {
    return bad_field("names",
                     absl::StrCat("has ", request.names_size(), " names; 1 to ", kMaxBatch, " are right"));
  }
  const std::string prefix = absl::StrCat(request.parent(), "/buffers/");
  for (int i = 0; i < request.names_size(); ++i) {
    if (absl::StartsWith(request.names(i), prefix)) continue;
    return bad_field(absl::StrCat("names[", i, "]"),
                     absl::StrCat("is '", std::string(cut_text(request.names(i), 128)),
                                  "'; the name of a buffer of `parent`, sessions/{session}/buffers/{buffer}, "
                                  "is right"));
  }
  return runtime_.sessions.delete_buffers(request.parent(), {request.names().begin(), request.names().end()},
                                          request.allow_missing(), caller);
}

void SessionsService::write_session(const Session& session, v1::Session& message) const {
  message.set_name(session.name);
  message.set_instance(runtime_.instance);
  message.set_endpoint(runtime_.configuration.advertise);
  message.set_device(session.slot->device->name());
  message.set_quota_bytes(static_cast<std::int64_t>(session.quota->limit_bytes()));
  message.set_used_bytes(static_cast<std::int64_t>(session.quota->reserved_bytes()));
  *message.mutable_expire_time() = to_proto(on_the_clock(runtime_.sessions.lease_end(session)));
}

}  // namespace cumulus::server
