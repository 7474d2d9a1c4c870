#include "cli/point_file.h"

#include <absl/strings/str_cat.h>

#include <filesystem>
#include <map>
#include <utility>

#include "cli/npy_file.h"
#include "cli/npz_reader.h"
#include "cli/ply_file.h"

namespace cumulus::cli {
namespace {

absl::StatusOr<Array> read_from_npz(const std::string& path) {
  absl::StatusOr<std::map<std::string, Array>> arrays = read_npz(path);
  if (!arrays.ok()) return arrays.status();
  for (const char* name : {"points", "data"}) {
    if (const auto found = arrays->find(name); found != arrays->end()) return std::move(found->second);
  }
  if (arrays->size() == 1) return std::move(arrays->begin()->second);
  return absl::InvalidArgumentError(
      absl::StrCat("cannot read points from ", path, ": of its ", arrays->size(),
                   " arrays none is named points or data; name the right one so, or keep only it"));
}

absl::StatusOr<Array> read_any(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".ply") return read_ply(path);
  if (extension == ".npy") return read_npy(path);
  if (extension == ".npz") return read_from_npz(path);
  return absl::InvalidArgumentError(
      absl::StrCat("cannot read points from ", path, ": a .ply, .npy or .npz file is right"));
}

}  // namespace

absl::StatusOr<Array> read_points(const std::string& path) {
  absl::StatusOr<Array> points = read_any(path);
  if (!points.ok()) return points;
  const bool floats = points->type() == ElementType::kFloat32 || points->type() == ElementType::kFloat64;
  if (floats && points->shape().size() == 2) return points;
  std::string extents;
  for (const std::int64_t extent : points->shape())
    absl::StrAppend(&extents, extents.empty() ? "" : ", ", extent);
  return absl::InvalidArgumentError(absl::StrCat("cannot take ", path, " as points: it is ",
                                                 std::string(element_name(points->type())), " [", extents,
                                                 "]; float32 or float64 [points, dimensions] is right"));
}

}  // namespace cumulus::cli
