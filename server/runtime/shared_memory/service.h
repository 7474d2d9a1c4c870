#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "cumulus/v1/shared_memory.grpc.pb.h"
#include "server/runtime/connections/open_calls.h"
#include "server/runtime/runtime.h"
#include "server/runtime/shared_memory/region_calls.h"
#include "server/runtime/shared_memory/shared_download.h"
#include "server/runtime/shared_memory/socket.h"
#include "server/runtime/transfer/transfer_service.h"

namespace cumulus::server {

/// cumulus.v1.SharedMemory.
class SharedMemoryService final : public v1::SharedMemory::CallbackService,
                                  public RegionCalls,
                                  public CountsItsWork {
 public:
  /// Its transfers count as those of `transfers`. `socket` is null where no memory is shared; it begins its
  /// clients' transfers here.
  SharedMemoryService(Runtime& runtime, TransferService& transfers, SharedMemorySocket* socket);
  ~SharedMemoryService() override;

  grpc::ServerUnaryReactor* WriteShared(grpc::CallbackServerContext* context,
                                        const v1::WriteSharedRequest* request, v1::Buffer* response) override;
  grpc::ServerUnaryReactor* ReadShared(grpc::CallbackServerContext* context,
                                       const v1::ReadSharedRequest* request,
                                       v1::ReadSharedResponse* response) override;
  absl::Status begin(const std::shared_ptr<SharedLink>& link, const Principal& caller, Asked asked) override;
  /// Where the server has one device: which one the CALL's session is of is not known yet.
  std::shared_ptr<EarlyCopy> begin_early(const std::shared_ptr<SharedRegion>& region, const Principal& caller,
                                         std::size_t bytes) override;
  void count_work_in(std::shared_ptr<OpenCalls> calls) override { calls_ = std::move(calls); }

 private:
  absl::StatusOr<std::shared_ptr<SharedLink>> find(const std::string& region, const Principal& caller);
  /// Of CALL. An error where the request is none.
  absl::Status begin_write(const std::shared_ptr<SharedLink>& link, Transfer::Options options,
                           std::string_view request, std::shared_ptr<EarlyCopy> early);
  absl::Status begin_read(const std::shared_ptr<SharedLink>& link, Transfer::Options options,
                          std::string_view request, SharedDownload::Gives gives);
  grpc::ServerUnaryReactor* refuse(grpc::CallbackServerContext& context, std::string_view rpc,
                                   const absl::Status& why);

  Runtime& runtime_;
  TransferService& transfers_;
  SharedMemorySocket* const socket_;
  std::shared_ptr<OpenCalls> calls_;  // null: nobody waits for what regions' connections ask for
};

}  // namespace cumulus::server
