#include "bench/operations/point_cloud.h"

#include <stdexcept>

#include "cli/files/points.h"

namespace cumulus::bench {

std::vector<float> read_point_cloud(const std::string& path) {
  const absl::StatusOr<cumulus::Array> points = cli::read_points(path);
  if (!points.ok()) throw std::runtime_error(std::string(points.status().message()));
  if (points->shape()[1] != 3) throw std::runtime_error(path + ": points in three dimensions are right");
  if (const auto floats = points->values<float>(); floats.ok()) return {floats->begin(), floats->end()};
  const auto doubles = points->values<double>();
  if (!doubles.ok()) throw std::runtime_error(std::string(doubles.status().message()));
  return {doubles->begin(), doubles->end()};
}

}  // namespace cumulus::bench
