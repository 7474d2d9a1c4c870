#pragma once

#include <absl/status/statusor.h>
#include <google/protobuf/generated_enum_reflection.h>

#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace cumulus::server {

/// A value of the wire and what it stands for.
template <class Wire, class Value>
struct EnumChoice {
  Wire wire;
  Value value;
};

/// bad_field that names the values of `right` as the wire does, in their order, each once and 0 (unspecified)
/// not at all: "is 7; WIDEST_SPREAD, ROUND_ROBIN or MIDPOINT is right". A value is given by its name; 0, and
/// one without a name, by its number.
absl::Status bad_enum(std::string_view field, const google::protobuf::EnumDescriptor& type, int value,
                      std::span<const int> right);

/// What the value `wire` of the request's field `field` stands for; bad_enum where it is none of `choices`.
/// What "unspecified" stands for is a choice of its own:
///
///   const auto split = read_enum<KdTreeSplit>("split", request.split(),
///                                             {{v1::KD_TREE_SPLIT_UNSPECIFIED, KdTreeSplit::kWidestSpread},
///                                              {v1::WIDEST_SPREAD, KdTreeSplit::kWidestSpread},
///                                              {v1::ROUND_ROBIN, KdTreeSplit::kRoundRobin}});
///   if (!split.ok()) return split.status();
template <class Value, class Wire>
absl::StatusOr<Value> read_enum(
    std::string_view field, Wire wire,
    std::initializer_list<EnumChoice<std::type_identity_t<Wire>, Value>> choices) {
  std::vector<int> right;
  for (const auto& choice : choices) {
    if (choice.wire == wire) return choice.value;
    right.push_back(choice.wire);
  }
  return bad_enum(field, *google::protobuf::GetEnumDescriptor<Wire>(), wire, right);
}

}  // namespace cumulus::server
