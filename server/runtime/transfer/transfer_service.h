#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "cumulus/v1/transfer.grpc.pb.h"
#include "server/runtime/runtime.h"
#include "server/runtime/transfer/staging_ring.h"
#include "server/runtime/transfer/transfer.h"
#include "server/runtime/transfer/upload_target.h"

namespace cumulus::server {

/// Capabilities.max_chunk_bytes.
inline constexpr std::size_t kMaxChunkBytes = std::size_t{1} << 20;

/// cumulus.v1.BufferTransfer. Its methods take messages as they come from the wire, so that data is never
/// copied into a protobuf string.
class TransferService final
    : public v1::BufferTransfer::WithRawCallbackMethod_WriteBuffer<
          v1::BufferTransfer::WithRawCallbackMethod_ReadBuffer<v1::BufferTransfer::Service>> {
 public:
  /// Throws where the devices' staging memory cannot be had.
  explicit TransferService(Runtime& runtime);

  grpc::ServerReadReactor<grpc::ByteBuffer>* WriteBuffer(grpc::CallbackServerContext* context,
                                                         grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* ReadBuffer(grpc::CallbackServerContext* context,
                                                         const grpc::ByteBuffer* request) override;

  /// Of a transfer that moves its bytes by another way, and counts as these do.
  Transfer::Options options(std::string_view method, grpc::CallbackServerContext& context,
                            Principal caller) const;
  /// Likewise, asked for on a region's connection.
  Transfer::Options options(std::string_view method, absl::Duration timeout, Principal caller,
                            TraceContext trace) const;
  /// What such a call's client is named in the log.
  static constexpr const char* kRegionClient = "unix:shared-memory";
  TransferWatch& watch() { return watch_; }

 private:
  /// Null for a device whose memory the host addresses.
  std::shared_ptr<StagingRing> find_ring(const Device& device) const;

  Runtime& runtime_;
  std::map<const Device*, std::shared_ptr<StagingRing>> rings_;
  const std::shared_ptr<TransferShares> shares_ = TransferShares::create();
  JoinedUploads joined_;
  TransferWatch watch_;
};

}  // namespace cumulus::server
