#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <vector>

#include "kernels/core/views.h"
#include "server/pipeline/operation.h"

namespace cumulus::server {

/// "FLOAT32"; the number where it is no element type.
std::string element_type_name(v1::ElementType type);

/// The extents of an input that is an image.
struct ImageShape {
  v1::ElementType type = v1::ELEMENT_TYPE_UNSPECIFIED;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 1;
  bool has_channels = false;  // [height, width, channels] rather than [height, width]

  /// A dense view of these extents.
  template <class T, Space S>
  ImageView<T, S> view(Span<T, S> elements) const {
    return {elements.data(), height, width, channels};
  }
  /// An array of these extents with elements of `element_type`.
  ArrayShape array(v1::ElementType element_type) const;
};

/// Reads `input` as [height, width] or [height, width, channels], each at least 1, with at most
/// `max_channels` and elements of one of `types`. INVALID_ARGUMENT naming the input's field.
absl::StatusOr<ImageShape> read_image_shape(const InputArray& input,
                                            const std::vector<v1::ElementType>& types,
                                            std::int64_t max_channels);

}  // namespace cumulus::server
