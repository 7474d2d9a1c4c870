#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cumulus/operation.h"

// For what makes operations, which needs nothing of gRPC.

namespace google::protobuf {
class Message;
}

namespace cumulus {

namespace v1 {
class Source;
}

/// The buffers that an operation reads. Their names are not known before it is sent: a request that is being
/// made has their places in this list instead.
class OperationInputs {
 public:
  void encode(const Source& source, v1::Source& out);
  /// Its place in the list, as a request that is being made names it.
  std::string add(std::shared_ptr<BufferState> buffer);
  const std::vector<std::shared_ptr<BufferState>>& buffers() const { return buffers_; }

 private:
  std::vector<std::shared_ptr<BufferState>> buffers_;
};

class OperationAccess {
 public:
  static const Operation::Request& request(const Operation& operation) { return *operation.request_; }

  /// `rpc` is the RPC's name in cumulus.v1.Operations.
  static Operation make(std::string_view rpc, const google::protobuf::Message& request,
                        const OperationInputs& inputs);
};

}  // namespace cumulus
