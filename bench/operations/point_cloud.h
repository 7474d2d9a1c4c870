#pragma once

#include <string>
#include <vector>

namespace cumulus::bench {

/// A cloud in three dimensions, [points, 3], from a file that `cumulus kd-tree build` reads too. Throws
/// std::runtime_error.
std::vector<float> read_point_cloud(const std::string& path);

}  // namespace cumulus::bench
