#pragma once

#include <google/protobuf/message.h>

#include <span>
#include <string>

#include "server/pipeline/operation.h"

namespace cumulus::server {

/// What a plan follows from: the fields of the request, without its options and what its sources have, and
/// the shapes of its inputs. Two requests of the same key have the same plan, where the operation looks at
/// nothing else. Empty where a request has fields of which there is no key.
std::string plan_key(const google::protobuf::Message& request, std::span<const InputArray> inputs);

}  // namespace cumulus::server
