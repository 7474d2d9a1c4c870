#include "cli/commands/kd_tree/tree_file.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "cli/files/input.h"
#include "cli/files/npy.h"
#include "cli/files/npz.h"
#include "cli/files/npz_reader.h"
#include "cli/files/points.h"

namespace cumulus::cli {
namespace {

// Bytes of scikit-learn's NodeData_t.
constexpr std::int64_t kNodeBytes = 32;

template <class T>
const T* elements(const Array& array) {
  return reinterpret_cast<const T*>(array.bytes().data());
}

absl::Status no_tree(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("cannot read ", path, ": ", what, "; a file of 'cumulus kd-tree build' is right"));
}

bool fits(const KdTreeFile& tree) {
  const auto is = [](const Array& array, ElementType type, const Shape& shape) {
    return array.type() == type && array.shape() == shape;
  };
  if (tree.data.type() != ElementType::kFloat64 || tree.data.shape().size() != 2) return false;
  if (tree.node_data.shape().size() != 2) return false;
  return is(tree.idx_array, ElementType::kInt64, {tree.points()}) &&
         is(tree.node_data, ElementType::kUint8, {tree.nodes(), kNodeBytes}) &&
         is(tree.node_bounds, ElementType::kFloat64, {2, tree.nodes(), tree.dimensions()});
}

}  // namespace

std::int64_t KdTreeFile::levels() const {
  std::int64_t levels = 0;
  for (std::int64_t count = nodes(); count > 0; count /= 2) ++levels;
  return levels;
}

absl::StatusOr<Array> KdTreeFile::ordered_points() const {
  absl::StatusOr<Array> ordered = Array::allocate(ElementType::kFloat64, data.shape());
  if (!ordered.ok()) return ordered;
  const auto* from = elements<double>(data);
  auto* to = reinterpret_cast<double*>(ordered->mutable_bytes().data());
  for (std::int64_t i = 0; i < points(); ++i) {
    const std::int64_t index = elements<std::int64_t>(idx_array)[i];
    if (index < 0 || index >= points()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "idx_array[", i, "] is ", index, "; an index of one of the ", points(), " points is right"));
    }
    std::copy_n(from + index * dimensions(), dimensions(), to + i * dimensions());
  }
  return ordered;
}

absl::StatusOr<Array> to_float64(Array numbers) {
  if (numbers.type() == ElementType::kFloat64) return numbers;
  absl::StatusOr<Array> wide = Array::allocate(ElementType::kFloat64, numbers.shape());
  if (!wide.ok()) return wide;
  const auto* from = elements<float>(numbers);
  const std::size_t count = numbers.bytes().size() / sizeof(float);
  std::copy(from, from + count, reinterpret_cast<double*>(wide->mutable_bytes().data()));
  return wide;
}

absl::StatusOr<Array> read_radii(const std::string& path, std::int64_t count) {
  absl::StatusOr<Array> radii = read_npy(path);
  if (!radii.ok()) return radii;
  if (radii->shape() != Shape{count}) {
    return absl::InvalidArgumentError(absl::StrCat("--radii ", path, ": has the shape [",
                                                   absl::StrJoin(radii->shape(), ", "), "]; [", count,
                                                   "], one radius for each query, is right"));
  }
  radii = to_floating(*std::move(radii), path);
  if (!radii.ok()) return radii;
  return to_float64(*std::move(radii));
}

absl::Status write_kd_tree(const std::string& path, const KdTreeFile& tree) {
  // leaf_size, n_levels, n_nodes, and what scikit-learn counts during queries.
  const std::vector<std::int64_t> counts = {tree.leaf_size, tree.levels(), tree.nodes(), 0, 0, 0, 0};
  return write_npz(path, {{"data", tree.data.view()},
                          {"idx_array", tree.idx_array.view()},
                          {"node_data", tree.node_data.view()},
                          {"node_bounds", tree.node_bounds.view()},
                          {"counts", ArrayView(counts)}});
}

absl::StatusOr<KdTreeFile> read_kd_tree(const std::string& path) {
  if (const std::string extension = input_extension(path); extension == ".ply" || extension == ".npy")
    return no_tree(path, "it is a file of points, of which no tree has been built");
  absl::StatusOr<std::map<std::string, Array>> arrays = read_npz(path);
  if (!arrays.ok()) return arrays.status();
  if (arrays->size() == 2 && arrays->contains("points") && arrays->contains("idx_array")) {
    return no_tree(path,
                   "it is a left-balanced layout, for other programs' searches; leave --left-balanced out");
  }
  for (const char* name : {"data", "idx_array", "node_data", "node_bounds", "counts"}) {
    if (!arrays->contains(name)) return no_tree(path, absl::StrCat("it has no array ", name));
  }
  const Array& counts = arrays->at("counts");
  KdTreeFile tree{std::move(arrays->at("data")), std::move(arrays->at("idx_array")),
                  std::move(arrays->at("node_data")), std::move(arrays->at("node_bounds"))};
  if (counts.type() != ElementType::kInt64 || counts.shape() != Shape{7} || !fits(tree)) {
    return no_tree(path, "its arrays do not go together");
  }
  tree.leaf_size = elements<std::int64_t>(counts)[0];
  return tree;
}

}  // namespace cumulus::cli
