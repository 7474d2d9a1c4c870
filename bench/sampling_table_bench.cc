#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "bench/bench.h"
#include "kernels/sampling_table/sampling_table.h"
#include "tests/cases/sampling_table_case.h"
#include "tests/cases/sampling_table_samples.h"

namespace cumulus::bench {
namespace {

using testing::MapPattern;
using testing::MapShape;
using testing::OracleTable;
using testing::TestMap;

std::string size_name(MapShape shape, std::int64_t channels) {
  const std::string extents = std::to_string(shape.height) + "x" + std::to_string(shape.width);
  return channels == 1 ? extents : extents + "x" + std::to_string(channels);
}

/// A table in the executor's memory, with what it takes to build it.
template <class T, class Executor>
class TableOnExecutor {
 public:
  TableOnExecutor(Executor& executor, const TestMap<T>& map,
                  sampling::Method method = sampling::Method::kRadixForest)
      : executor_(&executor),
        params_{.height = map.height, .width = map.width, .method = method},
        view_(nullptr, map.height, map.width, map.channels),
        weights_(executor, map.elements),
        table_(executor, sampling_table_bytes(params_)),
        report_(report_memory()) {
    view_.data = weights_.data();
  }

  void build() {
    build_sampling_table(*executor_, view_, params_, table_.span(),
                         report_.as<SamplingTableReport>(1).data());
  }
  std::size_t scratch_bytes() const { return sampling_table_scratch_bytes(params_); }
  sampling::TableHeader header() const { return sampling_table_header(params_); }
  Span<const std::byte, Executor::kSpace> span() const { return table_.span(); }
  std::size_t bytes() const { return table_.size(); }
  std::vector<std::byte> to_host() const { return table_.to_host(); }

 private:
  /// Pinned for a GPU, which otherwise makes the host wait.
  static HostMemory report_memory() {
    if constexpr (Executor::kSpace == Space::kDevice) return allocate_pinned(sizeof(SamplingTableReport));
    return allocate_host(sizeof(SamplingTableReport));
  }

  Executor* executor_;
  SamplingTableParams params_;
  ImageView<const T, Executor::kSpace> view_;
  Array<T, Executor> weights_;
  Array<std::byte, Executor> table_;
  HostMemory report_;
};

/// Measures the build of `table`, which is that of `map`. `rows` of the oracle are compared, 0: all bytes.
template <class T, class Executor>
void measure_build(Runner<Executor>& runner, const std::string& name, const TestMap<T>& map,
                   TableOnExecutor<T, Executor>& table, const testing::OracleOptions& options,
                   std::int64_t rows) {
  runner.measure({
      .name = name,
      .bytes = testing::sampling_table_moved_bytes(map, table.bytes()),
      .items = static_cast<double>(map.height * map.width),
      .unit = "texels",
      .scratch_bytes = table.scratch_bytes(),
      .run = [&] { table.build(); },
      .verify =
          [&] {
            const auto bytes = table.to_host();
            const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
            return rows == 0 ? verify_sampling_table(oracle_table(map, options), data)
                             : verify_sampling_table_rows(map, options, data, rows);
          },
      .verified_by =
          rows == 0 ? "serial oracle, every byte" : "serial oracle, " + std::to_string(rows) + " rows",
  });
}

template <class T, class Executor>
void bench_build(Runner<Executor>& runner, MapShape shape, std::int64_t channels, MapPattern pattern) {
  constexpr std::int64_t kWholeOracleTexels = std::int64_t{1} << 21;
  constexpr std::int64_t kOracleRows = 64;
  const std::string type = std::is_same_v<T, float> ? "f32" : "u8";
  const std::string kind = pattern == MapPattern::kSun ? "sun" : "random";
  const std::string name = "build_sampling_table/" + type + "-" + kind + "/" + size_name(shape, channels);
  if (!runner.wants(name)) return;
  const auto map = testing::make_map<T>(shape, channels, 0, pattern);
  TableOnExecutor<T, Executor> table(runner.executor(), map);
  const bool whole = shape.height * shape.width <= kWholeOracleTexels;
  measure_build(runner, name, map, table, {}, whole ? 0 : kOracleRows);
}

/// The oracle of a method's samples. All but the alias table draw the same, so that the oracle need not build
/// what they search.
template <class T>
OracleTable oracle_of_samples(const TestMap<T>& map, sampling::Method method) {
  constexpr auto kPlainest = sampling::Method::kBinarySearch;
  const bool alias = method == sampling::Method::kAlias;
  return oracle_table(map, testing::OracleOptions{.method = static_cast<int>(alias ? method : kPlainest)});
}

/// Where samples go.
template <class Executor>
struct SampleMemory {
  Array<float, Executor> position;
  Array<float, Executor> direction;
  Array<float, Executor> pdf;

  SampleMemory(Executor& executor, std::size_t count)
      : position(executor, 2 * count), direction(executor, 3 * count), pdf(executor, count) {}
  DrawnSamples<Executor::kSpace> span() const { return {position.span(), direction.span(), pdf.span()}; }

  /// Compares `checked` of the samples, spread over all; `point_at(i)` is the point of sample i.
  template <class PointAt>
  std::string verify(const OracleTable& oracle, std::size_t checked, const PointAt& point_at) const {
    const auto positions = position.to_host();
    const auto directions = direction.to_host();
    const auto densities = pdf.to_host();
    for (std::size_t k = 0; k < checked; ++k) {
      const std::size_t i = k * (densities.size() - 1) / (checked - 1);
      const std::string wrong =
          verify_sample(oracle, point_at(i), &positions[2 * i], densities[i], &directions[3 * i]);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }
};

/// Builds `table`, then measures how points are drawn from it.
template <class Executor>
void measure_draw(Runner<Executor>& runner, const std::string& name, const TestMap<float>& map,
                  TableOnExecutor<float, Executor>& table, const DrawParameters& parameters,
                  std::size_t checked) {
  Executor& executor = runner.executor();
  executor.reserve_scratch(table.scratch_bytes());
  table.build();
  executor.synchronize();
  const auto count = static_cast<std::size_t>(parameters.count);
  const SampleMemory<Executor> samples(executor, count);
  const auto point_at = [&](std::size_t i) -> testing::UnitPoint {
    const auto index = static_cast<std::uint32_t>(i);
    if (parameters.sequence == PointSequence::kSobol) return testing::oracle_sobol_point(index);
    const sampling::FixedPoint2 drawn = sampling::random_point(index, parameters.seed);
    return {drawn.x, drawn.y};
  };
  runner.measure({
      .name = name,
      .bytes = 6 * sizeof(float) * count,
      .items = static_cast<double>(count),
      .unit = "samples",
      .scratch_bytes = 0,
      .run = [&] { draw_samples(executor, table.header(), table.span(), parameters, samples.span()); },
      .verify =
          [&] { return samples.verify(oracle_of_samples(map, table.header().method), checked, point_at); },
      .verified_by = "oracle in long double, " + std::to_string(checked) + " samples",
  });
}

/// Draws in the sequence's order (coherent), or at random.
template <class Executor>
void bench_draw(Runner<Executor>& runner, MapShape shape, std::int64_t count, PointSequence sequence) {
  constexpr std::size_t kChecked = 4096;
  const bool random = sequence == PointSequence::kRandom;
  const std::string name = std::string("draw_samples/") + (random ? "random/" : "sobol/") +
                           size_name(shape, 1) + "/" + std::to_string(count);
  if (!runner.wants(name)) return;
  const auto map = testing::make_map<float>(shape, 1, 0, MapPattern::kSun);
  TableOnExecutor<float, Executor> table(runner.executor(), map);
  measure_draw(runner, name, map, table, {.count = count, .sequence = sequence, .seed = random ? 7u : 0u},
               kChecked);
}

struct NamedMethod {
  const char* name;
  sampling::Method method;
};
constexpr NamedMethod kMethods[] = {{"radix-forest", sampling::Method::kRadixForest},
                                    {"radix-forest-4", sampling::Method::kRadixForest4},
                                    {"balanced-forest", sampling::Method::kBalancedForest},
                                    {"cutpoint-binary", sampling::Method::kCutpointBinary},
                                    {"cutpoint-linear", sampling::Method::kCutpointLinear},
                                    {"binary-search", sampling::Method::kBinarySearch},
                                    {"quaternary-tree", sampling::Method::kQuaternaryTree},
                                    {"alias", sampling::Method::kAlias}};

/// Points that are ready, as a renderer has them: evenly spread, neighbours far from each other (R2, M.
/// Roberts, "The Unreasonable Effectiveness of Quasirandom Sequences", 2018), or in the order of a grid.
struct ReadyPoints {
  const char* name;
  bool grid;

  sampling::FixedPoint2 point(std::size_t i, std::size_t count) const {
    if (!grid) {
      const auto index = static_cast<std::uint32_t>(i);
      return {index * 3242174889u, index * 2447445414u};
    }
    const auto side = static_cast<std::uint64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
    const std::uint64_t step = (std::uint64_t{1} << 32) / side;
    return {static_cast<std::uint32_t>(i % side * step + step / 2),
            static_cast<std::uint32_t>(i / side * step + step / 2)};
  }
};
constexpr ReadyPoints kReadyPoints[] = {{"spread", false}, {"grid", true}};

/// Looks up points that are ready.
template <class Executor>
void measure_points(Runner<Executor>& runner, const std::string& name, const TestMap<float>& map,
                    TableOnExecutor<float, Executor>& table, const ReadyPoints& ready, std::size_t count) {
  constexpr std::size_t kChecked = 32;
  Executor& executor = runner.executor();
  executor.reserve_scratch(table.scratch_bytes());
  table.build();
  executor.synchronize();
  std::vector<sampling::FixedPoint2> host(count);
  for (std::size_t i = 0; i < count; ++i) host[i] = ready.point(i, count);
  const Array<sampling::FixedPoint2, Executor> points(executor, host);
  const SampleMemory<Executor> samples(executor, count);
  runner.measure({
      .name = name,
      .bytes = (sizeof(sampling::FixedPoint2) + 6 * sizeof(float)) * count,
      .items = static_cast<double>(count),
      .unit = "samples",
      .scratch_bytes = 0,
      .run = [&] { sample_points(executor, table.header(), table.span(), points.span(), 0, samples.span()); },
      .verify =
          [&] {
            return samples.verify(oracle_of_samples(map, table.header().method), kChecked,
                                  [&](std::size_t i) -> testing::UnitPoint {
                                    return {host[i].x, host[i].y};
                                  });
          },
      .verified_by = "oracle in long double, " + std::to_string(kChecked) + " samples",
  });
}

/// Builds by one method, draws from what was built, and looks points up in it. `make_map` makes the map where
/// any of that is wanted.
template <class Executor, class MakeMap>
void bench_method(Runner<Executor>& runner, const NamedMethod& named, const std::string& map_name,
                  const MakeMap& make_map, std::int64_t samples) {
  constexpr std::int64_t kOracleRows = 16;
  constexpr std::size_t kChecked = 32;
  const std::string tail = std::string(named.name) + "/" + map_name;
  const std::string number = "/" + std::to_string(samples);
  const std::string build_name = "build_sampling_table/" + tail;
  const std::string draw_name = "draw_samples/" + tail + number;
  const auto points_name = [&](const ReadyPoints& ready) {
    return "sample_points/" + std::string(ready.name) + "/" + tail + number;
  };
  const bool any_points =
      std::any_of(std::begin(kReadyPoints), std::end(kReadyPoints),
                  [&](const ReadyPoints& ready) { return runner.wants(points_name(ready)); });
  if (!runner.wants(build_name) && !runner.wants(draw_name) && !any_points) return;
  const TestMap<float> map = make_map();
  TableOnExecutor<float, Executor> table(runner.executor(), map, named.method);
  if (runner.wants(build_name)) {
    measure_build(runner, build_name, map, table, {.method = static_cast<int>(named.method)},
                  std::min(kOracleRows, map.height));
  }
  if (runner.wants(draw_name)) {
    measure_draw(runner, draw_name, map, table,
                 {.count = samples, .sequence = PointSequence::kRandom, .seed = 7}, kChecked);
  }
  for (const ReadyPoints& ready : kReadyPoints) {
    if (runner.wants(points_name(ready))) {
      measure_points(runner, points_name(ready), map, table, ready, static_cast<std::size_t>(samples));
    }
  }
}

/// One row of the weights that `weight` gives to x in [0, 1).
template <class Weight>
TestMap<float> line_of(std::int64_t n, const Weight& weight) {
  TestMap<float> map{1, n, 1, n, {}};
  for (std::int64_t i = 0; i < n; ++i) map.elements.push_back(static_cast<float>(weight(i, n)));
  return map;
}

/// Every method on a sky with a sun, and on distributions like those of Binder and Keller's Table 1.
template <class Executor>
void bench_methods(Runner<Executor>& runner, MapShape shape, std::int64_t samples) {
  const auto power = [](std::int64_t i, std::int64_t n) {
    return std::pow(static_cast<double>(i + 1) / static_cast<double>(n), 20);
  };
  const auto saw = [](std::int64_t i, std::int64_t /*n*/) {
    return std::pow(static_cast<double>(i % 32 + 1) / 32, 25);
  };
  const auto long_saw = [](std::int64_t i, std::int64_t /*n*/) {
    return std::pow(static_cast<double>(i % 64 + 1) / 64, 35);
  };
  const auto spikes = [](std::int64_t i, std::int64_t n) {
    return i % (n / 4) == n / 8 ? 0.8 / 4 : 0.2 / static_cast<double>(n - 4);
  };
  const std::int64_t longest = runner.quick() ? 1 << 12 : 1 << 20;
  for (const NamedMethod& method : kMethods) {
    bench_method(
        runner, method, "sun/" + size_name(shape, 1),
        [&] { return testing::make_map<float>(shape, 1, 0, MapPattern::kSun); }, samples);
    for (const std::int64_t n : {std::int64_t{100}, longest}) {
      std::string size = "/";  // in two steps: gcc 12 sees an overlap in one
      size += std::to_string(n);
      bench_method(
          runner, method, "power20" + size, [&] { return line_of(n, power); }, samples);
      bench_method(
          runner, method, "mod32" + size, [&] { return line_of(n, saw); }, samples);
      bench_method(
          runner, method, "mod64" + size, [&] { return line_of(n, long_saw); }, samples);
      bench_method(
          runner, method, "spikes" + size, [&] { return line_of(n, spikes); }, samples);
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
  bench_build<float>(runner, middle, 3, MapPattern::kRandom);
  bench_build<std::uint8_t>(runner, middle, 4, MapPattern::kRandom);

  std::int64_t samples = kGpu ? 100'000'000 : 1'000'000;
  MapShape drawn_map{1024, 2048};
  if (runner.quick()) {
    samples = 10'000;
    drawn_map = shapes.front();
  }
  bench_draw(runner, drawn_map, samples, PointSequence::kSobol);
  bench_draw(runner, drawn_map, samples, PointSequence::kRandom);
  bench_methods(runner, drawn_map, samples);
}

}  // namespace

void bench_sampling_table(Runner<CpuExecutor>& runner);
void bench_sampling_table(Runner<CudaExecutor>& runner);

void bench_sampling_table(Runner<CpuExecutor>& runner) { bench_all(runner); }
void bench_sampling_table(Runner<CudaExecutor>& runner) { bench_all(runner); }

}  // namespace cumulus::bench
