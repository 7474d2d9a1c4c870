#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

#include "cumulus/array.h"

namespace cumulus::cli {

/// A KD-tree as `kd-tree build` keeps it in a .npz file: what scikit-learn's KDTree holds, in its types.
struct KdTreeFile {
  Array data;         // float64 [points, dimensions]: as they were given
  Array idx_array;    // int64 [points]
  Array node_data;    // uint8 [nodes, 32]
  Array node_bounds;  // float64 [2, nodes, dimensions]
  std::int64_t leaf_size = 0;

  std::int64_t points() const { return data.shape()[0]; }
  std::int64_t dimensions() const { return data.shape()[1]; }
  std::int64_t nodes() const { return node_data.shape()[0]; }
  std::int64_t levels() const;
  /// The points in the tree's order, as FindNeighbors wants them.
  absl::StatusOr<Array> ordered_points() const;
};

/// float32 or float64 as float64.
absl::StatusOr<Array> to_float64(Array numbers);

/// A .npy file of `count` numbers, one for each query, as float64.
absl::StatusOr<Array> read_radii(const std::string& path, std::int64_t count);

/// Its arrays are data, idx_array, node_data, node_bounds and, for scikit-learn's state, counts.
absl::Status write_kd_tree(const std::string& path, const KdTreeFile& tree);

/// Refuses arrays that do not go together.
absl::StatusOr<KdTreeFile> read_kd_tree(const std::string& path);

}  // namespace cumulus::cli
