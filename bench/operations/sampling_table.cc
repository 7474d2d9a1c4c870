#include "kernels/sampling_table/sampling_table.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "bench/baselines/sampling_table_plain.h"
#include "bench/harness/bench.h"
#include "bench/operations/sampling_table_comparison.h"
#include "bench/operations/sampling_table_maps.h"
#include "bench/operations/sampling_table_subjects.h"
#include "tests/cases/sampling_table_case.h"
#include "tests/cases/sampling_table_weights_case.h"

namespace cumulus::bench {
namespace {

using testing::MapPattern;
using testing::MapShape;
using testing::TestMap;

std::string size_name(MapShape shape, std::int64_t channels) {
  const std::string extents = std::to_string(shape.height) + "x" + std::to_string(shape.width);
  return channels == 1 ? extents : extents + "x" + std::to_string(channels);
}

template <class T, class Executor>
void bench_build(Runner<Executor>& runner, MapShape shape, std::int64_t channels, MapPattern pattern) {
  constexpr std::int64_t kWholeOracleTexels = std::int64_t{1} << 21;
  constexpr std::int64_t kOracleRows = 64;
  constexpr bool kHalf = std::is_same_v<T, Float16>;
  const std::string type = kHalf ? "f16" : std::is_same_v<T, float> ? "f32" : "u8";
  const std::string kind = pattern == MapPattern::kSun ? "sun" : "random";
  const std::string name = "build_sampling_table/" + type + "-" + kind + "/" + size_name(shape, channels);
  if (!runner.wants(name)) return;
  const auto map = [&] {
    if constexpr (kHalf) return testing::narrowed(testing::make_map<float>(shape, channels, 0, pattern));
    if constexpr (!kHalf) return testing::make_map<T>(shape, channels, 0, pattern);
  }();
  TableOnExecutor<T, Executor> table(runner.executor(), map);
  measure_build(runner, name, map, table, shape.height * shape.width <= kWholeOracleTexels ? 0 : kOracleRows);
}

/// Draws in the sequence's order, or at random.
template <class Executor>
void bench_draw(Runner<Executor>& runner, MapShape shape, std::int64_t count, PointSequence sequence) {
  const bool random = sequence == PointSequence::kRandom;
  const std::string name = std::string("draw_samples/") + (random ? "random/" : "sobol/") +
                           size_name(shape, 1) + "/" + std::to_string(count);
  if (!runner.wants(name)) return;
  const auto map = testing::make_map<float>(shape, 1, 0, MapPattern::kSun);
  TableOnExecutor<float, Executor> table(runner.executor(), map);
  table.build_now();
  OracleOfMap<float> oracle(map, sampling::Method::kRadixForest);
  measure_draws(runner, name, table, oracle, {.count = count, .sequence = sequence, .seed = random ? 7u : 0u},
                4096);
}

/// Builds by one method, draws from what was built, and samples it at points that are ready. `make_map` makes
/// the map, where any of that is wanted.
template <class Executor, class MakeMap>
void bench_method(Runner<Executor>& runner, const NamedMethod& named, const std::string& map_name,
                  const MakeMap& make_map, PointsOnExecutor<Executor>& ready_points) {
  const auto samples = static_cast<std::int64_t>(ready_points.count());
  const std::string tail = std::string(named.name) + "/" + map_name;
  const std::string build_name = "build_sampling_table/" + tail;
  const std::string draw_name = "draw_samples/" + tail + "/" + std::to_string(samples);
  const bool draws = runner.wants(draw_name);
  const bool points =
      std::any_of(std::begin(kReadyPoints), std::end(kReadyPoints),
                  [&](const ReadyPoints& ready) { return runner.wants(points_name(ready, tail, samples)); });
  if (!runner.wants(build_name) && !draws && !points) return;
  const TestMap<float> map = make_map();
  TableOnExecutor<float, Executor> table(runner.executor(), map, named.method);
  if (runner.wants(build_name)) measure_build(runner, build_name, map, table, 16);
  if (!draws && !points) return;
  table.build_now();
  OracleOfMap<float> oracle(map, named.method);
  if (draws) {
    measure_draws(runner, draw_name, table, oracle,
                  {.count = samples, .sequence = PointSequence::kRandom, .seed = 7}, 32);
  }
  for (const ReadyPoints& ready : kReadyPoints) {
    const std::string name = points_name(ready, tail, samples);
    if (runner.wants(name)) measure_points(runner, name, table, oracle, ready_points, ready);
  }
}

/// Every method on a sky with a sun, and on distributions like those of Binder and Keller's Table 1.
template <class Executor>
void bench_methods(Runner<Executor>& runner, MapShape shape, std::int64_t samples) {
  const std::int64_t longest = runner.quick() ? 1 << 12 : 1 << 20;
  PointsOnExecutor<Executor> points(runner.executor(), static_cast<std::size_t>(samples));
  for (const NamedMethod& method : kSamplingMethods) {
    bench_method(
        runner, method, "sun/" + size_name(shape, 1),
        [&] { return testing::make_map<float>(shape, 1, 0, MapPattern::kSun); }, points);
    for (const std::int64_t n : {std::int64_t{100}, longest}) {
      std::string size = "/";  // in two steps: gcc 12 sees an overlap in one
      size += std::to_string(n);
      for (const NamedLine& line : kLines) {
        bench_method(
            runner, method, line.name + size, [&] { return line_of(n, line.weight); }, points);
      }
    }
  }
}

/// A plain table, and the methods that search what it searches.
struct PlainPeer {
  const char* name;
  PlainSearch search;
  std::vector<sampling::Method> methods;
};

/// What the CPU backend takes for a map of 8192 x 4096 beside a build as one writes it down, by one thread.
void bench_plain(Runner<CpuExecutor>& runner, MapShape shape) {
  using sampling::Method;
  const PlainPeer peers[] = {
      {"sums", PlainSearch::kSums, {Method::kBinarySearch}},
      {"guide", PlainSearch::kGuide, {Method::kCutpointBinary, Method::kBalancedForest}},
      {"forest", PlainSearch::kForest, {Method::kRadixForest}},
      {"alias", PlainSearch::kAlias, {Method::kAlias}}};
  const std::string size = "/" + size_name(shape, 1);
  std::optional<TestMap<float>> random;
  const auto map = [&]() -> const TestMap<float>& {
    if (!random) random = testing::make_map<float>(shape, 1, 0, MapPattern::kRandom);
    return *random;
  };
  for (const PlainPeer& peer : peers) {
    const std::string plain_name = std::string("build_sampling_table/plain-") + peer.name + size;
    if (runner.wants(plain_name)) {
      PlainTable table(static_cast<std::size_t>(shape.height), static_cast<std::size_t>(shape.width),
                       peer.search);
      runner.measure({
          .name = plain_name,
          .bytes = testing::sampling_table_moved_bytes(map(), table.bytes()),
          .items = static_cast<double>(shape.height * shape.width),
          .unit = "texels",
          .scratch_bytes = 0,
          .run = [&] { table.build(map().elements); },
          .verify = [&] { return table.verify(map().elements); },
          .verified_by = peer.search == PlainSearch::kAlias ? "shares in double, 16 rows"
                                                            : "sums in long double, 16 rows",
      });
    }
    for (const NamedMethod& named : kSamplingMethods) {
      const std::string name =
          std::string("build_sampling_table/beside-plain-") + peer.name + "/" + named.name + size;
      if (std::count(peer.methods.begin(), peer.methods.end(), named.method) == 0 || !runner.wants(name))
        continue;
      TableOnExecutor<float, CpuExecutor> table(runner.executor(), map(), named.method);
      measure_build(runner, name, map(), table, 16);
    }
  }
}

template <class Executor>
void bench_all(Runner<Executor>& runner) {
  constexpr bool kGpu = std::is_same_v<Executor, CudaExecutor>;
  std::vector<MapShape> shapes = {{512, 1024}, {1024, 2048}, {2048, 4096}, {4096, 8192}};
  if (kGpu) shapes.push_back({8192, 16384});
  if (runner.quick()) shapes = {{128, 256}};
  for (const MapShape shape : shapes) bench_build<float>(runner, shape, 1, MapPattern::kRandom);
  const MapShape middle = shapes[shapes.size() / 2];
  bench_build<float>(runner, middle, 1, MapPattern::kSun);
  bench_build<std::uint8_t>(runner, middle, 4, MapPattern::kRandom);
  std::vector<MapShape> in_color = {middle};
  if (kGpu && !runner.quick()) in_color.push_back({4096, 8192});
  for (const MapShape shape : in_color) {
    bench_build<Float16>(runner, shape, 1, MapPattern::kRandom);
    for (const std::int64_t channels : {3, 4}) {
      bench_build<float>(runner, shape, channels, MapPattern::kRandom);
      bench_build<Float16>(runner, shape, channels, MapPattern::kRandom);
    }
  }

  std::int64_t samples = kGpu ? 100'000'000 : 250'000;
  MapShape drawn_map{1024, 2048};
  if (runner.quick()) {
    samples = 10'000;
    drawn_map = shapes.front();
  }
  bench_draw(runner, drawn_map, samples, PointSequence::kSobol);
  bench_draw(runner, drawn_map, samples, PointSequence::kRandom);
  bench_methods(runner, drawn_map, samples);
  bench_comparison(runner);
  for (const std::string& path : runner.maps()) bench_map_file(runner, path, samples);
  if constexpr (!kGpu) bench_plain(runner, runner.quick() ? shapes.front() : MapShape{4096, 8192});
}

}  // namespace

void bench_sampling_table(Runner<CpuExecutor>& runner);
void bench_sampling_table(Runner<CudaExecutor>& runner);

void bench_sampling_table(Runner<CpuExecutor>& runner) { bench_all(runner); }
void bench_sampling_table(Runner<CudaExecutor>& runner) { bench_all(runner); }

}  // namespace cumulus::bench
