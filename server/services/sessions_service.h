#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "cumulus/v1/sessions.grpc.pb.h"
#include "server/runtime/runtime.h"

namespace cumulus::server {

/// cumulus.v1.Sessions. Nothing in it waits, so every call is answered where it arrives.
class SessionsService final : public v1::Sessions::CallbackService {
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

 public:
  explicit SessionsService(Runtime& runtime) : runtime_(runtime) {}

  Reactor* CreateSession(Context* context, const v1::CreateSessionRequest* request,
                         v1::Session* response) override;
  Reactor* GetSession(Context* context, const v1::GetSessionRequest* request, v1::Session* response) override;
  Reactor* DeleteSession(Context* context, const v1::DeleteSessionRequest* request,
                         google::protobuf::Empty* response) override;
  Reactor* GetBuffer(Context* context, const v1::GetBufferRequest* request, v1::Buffer* response) override;
  Reactor* ListBuffers(Context* context, const v1::ListBuffersRequest* request,
                       v1::ListBuffersResponse* response) override;
  Reactor* DeleteBuffer(Context* context, const v1::DeleteBufferRequest* request,
                        google::protobuf::Empty* response) override;
  Reactor* BatchDeleteBuffers(Context* context, const v1::BatchDeleteBuffersRequest* request,
                              google::protobuf::Empty* response) override;

 private:
  /// What `call` answers, where the handles can be this instance's.
  Reactor* answer_here(Context* context, std::string_view rpc,
                       const std::function<absl::Status(const Principal&)>& call) const;
  absl::Status create(const v1::CreateSessionRequest& request, const Principal& owner, v1::Session& response);
  absl::Status get(const v1::GetSessionRequest& request, const Principal& caller, v1::Session& response);
  absl::Status get_buffer(const v1::GetBufferRequest& request, const Principal& caller, v1::Buffer& response);
  absl::Status list(const v1::ListBuffersRequest& request, const Principal& caller,
                    v1::ListBuffersResponse& response);
  absl::Status delete_buffer(const v1::DeleteBufferRequest& request, const Principal& caller);
  absl::Status delete_buffers(const v1::BatchDeleteBuffersRequest& request, const Principal& caller);
  absl::StatusOr<DeviceSlot*> choose_device(const std::string& name);
  void write_session(const Session& session, v1::Session& message) const;

  Runtime& runtime_;
  std::mutex placement_mutex_;
};

}  // namespace cumulus::server
