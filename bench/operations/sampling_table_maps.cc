#include "bench/operations/sampling_table_maps.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "bench/operations/sampling_table_subjects.h"
#include "cli/files/picture.h"

namespace cumulus::bench {

testing::TestMap<float> read_map(const std::string& path) {
  const absl::StatusOr<cli::PictureInput> picture = cli::read_picture(path, cli::ReadAs::kBytes, {});
  if (!picture.ok()) throw std::runtime_error(std::string(picture.status().message()));
  const Shape& shape = picture->pixels.shape();
  const std::int64_t channels = shape.size() > 2 ? shape[2] : 1;
  testing::TestMap<float> map{shape[0], shape[1], channels, shape[1] * channels, {}};
  const auto keep = [&map](const auto& values) {
    for (const auto value : values) map.elements.push_back(value > 0 ? static_cast<float>(value) : 0.0F);
  };
  if (const auto floats = picture->pixels.values<float>(); floats.ok()) {
    keep(*floats);
  } else {
    keep(picture->pixels.values<std::uint8_t>().value());
  }
  return map;
}

testing::TestMap<float> resized(const testing::TestMap<float>& map, testing::MapShape shape) {
  const auto weight = [&map](std::int64_t y, std::int64_t x) {
    y = std::clamp<std::int64_t>(y, 0, map.height - 1);
    x = (x + map.width) % map.width;
    if (map.channels < 3) return map.at(y, x * map.channels);
    const std::int64_t texel = x * map.channels;
    return testing::oracle_luminance(map.at(y, texel), map.at(y, texel + 1), map.at(y, texel + 2));
  };
  testing::TestMap<float> wide{shape.height, shape.width, 1, shape.width, {}};
  wide.elements.reserve(static_cast<std::size_t>(shape.height * shape.width));
  for (std::int64_t y = 0; y < shape.height; ++y) {
    const double v =
        (static_cast<double>(y) + 0.5) * static_cast<double>(map.height) / static_cast<double>(shape.height) -
        0.5;
    const auto y0 = static_cast<std::int64_t>(std::floor(v));
    const auto down = static_cast<float>(v - std::floor(v));
    for (std::int64_t x = 0; x < shape.width; ++x) {
      const double u =
          (static_cast<double>(x) + 0.5) * static_cast<double>(map.width) / static_cast<double>(shape.width) -
          0.5;
      const auto x0 = static_cast<std::int64_t>(std::floor(u));
      const auto across = static_cast<float>(u - std::floor(u));
      const float above = weight(y0, x0) * (1 - across) + weight(y0, x0 + 1) * across;
      const float below = weight(y0 + 1, x0) * (1 - across) + weight(y0 + 1, x0 + 1) * across;
      wide.elements.push_back(above * (1 - down) + below * down);
    }
  }
  return wide;
}

namespace {

struct NamedSequence {
  const char* name;
  PointSequence sequence;
};
constexpr NamedSequence kSequences[] = {{"random", PointSequence::kRandom},
                                        {"sobol", PointSequence::kSobol},
                                        {"hammersley", PointSequence::kHammersley}};

template <class Executor>
void bench_file(Runner<Executor>& runner, const std::string& path, std::int64_t samples) {
  const testing::TestMap<float> map = read_map(path);
  const std::string stem = std::filesystem::path(path).stem().string();
  PointsOnExecutor<Executor> points(runner.executor(), static_cast<std::size_t>(samples));
  for (const NamedMethod& named : kSamplingMethods) {
    const std::string tail = std::string(named.name) + "/" + stem;
    TableOnExecutor<float, Executor> table(runner.executor(), map, named.method);
    if (runner.wants("build_sampling_table/" + tail))
      measure_build(runner, "build_sampling_table/" + tail, map, table, 16);
    table.build_now();
    OracleOfMap<float> oracle(map, named.method);
    for (const NamedSequence& sequence : kSequences) {
      const std::string name = "draw_samples/" + tail + "/" + sequence.name + "/" + std::to_string(samples);
      if (!runner.wants(name)) continue;
      measure_draws(runner, name, table, oracle, {.count = samples, .sequence = sequence.sequence, .seed = 0},
                    32);
    }
    for (const ReadyPoints& ready : kReadyPoints) {
      const std::string name = points_name(ready, tail, samples);
      if (runner.wants(name)) measure_points(runner, name, table, oracle, points, ready);
    }
  }
}

}  // namespace

void bench_map_file(Runner<CpuExecutor>& runner, const std::string& path, std::int64_t samples) {
  bench_file(runner, path, samples);
}
void bench_map_file(Runner<CudaExecutor>& runner, const std::string& path, std::int64_t samples) {
  bench_file(runner, path, samples);
}

}  // namespace cumulus::bench
