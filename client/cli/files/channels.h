#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "cumulus/array.h"

// Channels and directions of pictures, [height, width, channels].

namespace cumulus::cli {

/// These channels of a picture, in this order.
absl::StatusOr<Array> take_channels(const ArrayView& picture, const std::vector<int>& channels);

/// Puts the channels of `part` into `picture`, from its channel `first` on. Both have the same type, height
/// and width.
void put_channels(const ArrayView& part, std::size_t first, Array& picture);

/// Where the names of channels or layers are among `all`: those of "diffuse" are "diffuse.R" and the like. An
/// error names what is not there, and what is.
absl::StatusOr<std::vector<int>> find_channels(const std::vector<std::string>& all,
                                               const std::vector<std::string>& wanted);

/// A picture whose rows and columns lie as `orientation` says, 1 to 8 as TIFF and Exif count, turned upright.
absl::StatusOr<Array> upright(Array picture, int orientation);

}  // namespace cumulus::cli
