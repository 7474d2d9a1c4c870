#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cumulus/v1/array.pb.h"

namespace cumulus::server {

inline constexpr std::size_t kMaxExtents = 8;
/// No array is larger, so that sums of a few sizes cannot overflow.
inline constexpr std::size_t kMaxArrayBytes = std::size_t{1} << 58;

/// Bytes of one element; 0 for ELEMENT_TYPE_UNSPECIFIED and for values that are no element type.
std::size_t element_size(v1::ElementType type);

/// The form of a dense, row-major array.
struct ArrayShape {
  v1::ElementType type = v1::ELEMENT_TYPE_UNSPECIFIED;
  std::vector<std::int64_t> extents;  // outermost first; none: a single element

  /// The product of the extents, which are at least 0; kMaxArrayBytes where it is larger than that.
  std::size_t elements() const;
  /// Of the whole array; kMaxArrayBytes where it is larger than that.
  std::size_t bytes() const;
  /// "FLOAT32 [512, 1024, 3]".
  std::string text() const;

  friend bool operator==(const ArrayShape&, const ArrayShape&) = default;
};

/// Checks the type, the number of extents, their signs and the size; errors name the field below
/// `field`, the path of `spec` ("image.inline_array.spec").
absl::StatusOr<ArrayShape> parse_array_spec(const v1::ArraySpec& spec, std::string_view field);

void write_array_spec(const ArrayShape& shape, v1::ArraySpec& spec);

}  // namespace cumulus::server
