#pragma once

#include <string_view>

#include "cumulus/operation.h"

// For what makes operations, which needs nothing of gRPC.

namespace google::protobuf {
class MessageLite;
}

namespace cumulus {

namespace v1 {
class Source;
}

class OperationAccess {
 public:
  static const Operation::Request& request(const Operation& operation) { return *operation.request_; }

  /// `rpc` is the RPC's name in cumulus.v1.Operations.
  static Operation make(std::string_view rpc, const google::protobuf::MessageLite& request);
};

class SourceEncoder {
 public:
  static void encode(const Source& source, v1::Source& out);
};

}  // namespace cumulus
