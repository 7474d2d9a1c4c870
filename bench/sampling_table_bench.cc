#include <algorithm>
#include <cmath>
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
        table_(executor, sampling_table_bytes(params_)) {
    view_.data = weights_.data();
  }

  void build() { build_sampling_table(*executor_, view_, params_, table_.span(), &report_); }
  std::size_t scratch_bytes() const { return sampling_table_scratch_bytes(params_); }
  sampling::TableHeader header() const { return sampling_table_header(params_); }
  Span<const std::byte, Executor::kSpace> span() const { return table_.span(); }
  std::size_t bytes() const { return table_.size(); }
  std::vector<std::byte> to_host() const { return table_.to_host(); }

 private:
  Executor* executor_;
  SamplingTableParams params_;
  ImageView<const T, Executor::kSpace> view_;
  Array<T, Executor> weights_;
  Array<std::byte, Executor> table_;
  SamplingTableReport report_;
};

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
  runner.measure({
      .name = name,
      .bytes = testing::sampling_table_moved_bytes(map, table.bytes()),
      .items = static_cast<double>(shape.height * shape.width),
      .unit = "texels",
      .scratch_bytes = table.scratch_bytes(),
      .run = [&] { table.build(); },
      .verify =
          [&] {
            const auto bytes = table.to_host();
            const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
            return whole ? verify_sampling_table(oracle_table(map, true), data)
                         : verify_sampling_table_rows(map, {}, data, kOracleRows);
          },
      .verified_by = whole ? "serial oracle, every byte" : "serial oracle, 64 rows",
  });
}

/// Draws in the sequence's order (coherent), or at random.
template <class Executor>
void bench_draw(Runner<Executor>& runner, MapShape shape, std::int64_t count, PointSequence sequence) {
  const bool random = sequence == PointSequence::kRandom;
  const std::string name = std::string("draw_samples/") + (random ? "random/" : "sobol/") +
                           size_name(shape, 1) + "/" + std::to_string(count);
  if (!runner.wants(name)) return;
  Executor& executor = runner.executor();
  const auto map = testing::make_map<float>(shape, 1, 0, MapPattern::kSun);
  TableOnExecutor<float, Executor> table(executor, map);
  executor.reserve_scratch(table.scratch_bytes());
  table.build();
  executor.synchronize();
  const auto n = static_cast<std::size_t>(count);
  const Array<float, Executor> position(executor, 2 * n);
  const Array<float, Executor> direction(executor, 3 * n);
  const Array<float, Executor> pdf(executor, n);
  const DrawParameters parameters{.count = count, .sequence = sequence, .seed = random ? 7u : 0u};
  runner.measure({
      .name = name,
      .bytes = 6 * sizeof(float) * n,
      .items = static_cast<double>(count),
      .unit = "samples",
      .scratch_bytes = 0,
      .run =
          [&] {
            draw_samples(executor, table.header(), table.span(), parameters,
                         {position.span(), direction.span(), pdf.span()});
          },
      .verify = [&]() -> std::string {
        constexpr std::size_t kChecked = 4096;
        const OracleTable oracle = oracle_table(map, true);
        const auto positions = position.to_host();
        const auto directions = direction.to_host();
        const auto densities = pdf.to_host();
        for (std::size_t k = 0; k < kChecked; ++k) {
          const std::size_t i = k * (n - 1) / (kChecked - 1);
          const auto index = static_cast<std::uint32_t>(i);
          const sampling::FixedPoint2 drawn = sampling::random_point(index, parameters.seed);
          const testing::UnitPoint point =
              random ? testing::UnitPoint{drawn.x, drawn.y} : testing::oracle_sobol_point(index);
          const std::string wrong =
              verify_sample(oracle, point, &positions[2 * i], densities[i], &directions[3 * i]);
          if (!wrong.empty()) return wrong;
        }
        return "";
      },
      .verified_by = "oracle in long double, 4096 samples",
  });
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

/// Builds by one method, and draws from what was built.
template <class Executor>
void bench_method(Runner<Executor>& runner, const NamedMethod& named, const std::string& map_name,
                  const TestMap<float>& map, std::int64_t samples) {
  constexpr std::int64_t kOracleRows = 16;
  constexpr std::size_t kChecked = 32;
  const std::string tail = std::string(named.name) + "/" + map_name;
  const std::string build_name = "build_sampling_table/" + tail;
  const std::string draw_name = "draw_samples/" + tail + "/" + std::to_string(samples);
  if (!runner.wants(build_name) && !runner.wants(draw_name)) return;
  Executor& executor = runner.executor();
  TableOnExecutor<float, Executor> table(executor, map, named.method);
  const testing::OracleOptions options{.method = static_cast<int>(named.method)};
  runner.measure({
      .name = build_name,
      .bytes = testing::sampling_table_moved_bytes(map, table.bytes()),
      .items = static_cast<double>(map.height * map.width),
      .unit = "texels",
      .scratch_bytes = table.scratch_bytes(),
      .run = [&] { table.build(); },
      .verify =
          [&] {
            const auto bytes = table.to_host();
            return verify_sampling_table_rows(map, options,
                                              reinterpret_cast<const unsigned char*>(bytes.data()),
                                              std::min(kOracleRows, map.height));
          },
      .verified_by = "serial oracle, up to 16 rows",
  });
  executor.reserve_scratch(table.scratch_bytes());
  table.build();
  executor.synchronize();
  const auto n = static_cast<std::size_t>(samples);
  const Array<float, Executor> position(executor, 2 * n);
  const Array<float, Executor> direction(executor, 3 * n);
  const Array<float, Executor> pdf(executor, n);
  const DrawParameters parameters{.count = samples, .sequence = PointSequence::kRandom, .seed = 7};
  runner.measure({
      .name = draw_name,
      .bytes = 6 * sizeof(float) * n,
      .items = static_cast<double>(samples),
      .unit = "samples",
      .scratch_bytes = 0,
      .run =
          [&] {
            draw_samples(executor, table.header(), table.span(), parameters,
                         {position.span(), direction.span(), pdf.span()});
          },
      .verify = [&]() -> std::string {
        const OracleTable oracle = oracle_table(map, options);
        const auto positions = position.to_host();
        const auto directions = direction.to_host();
        const auto densities = pdf.to_host();
        for (std::size_t k = 0; k < kChecked; ++k) {
          const std::size_t i = k * (n - 1) / (kChecked - 1);
          const sampling::FixedPoint2 drawn =
              sampling::random_point(static_cast<std::uint32_t>(i), parameters.seed);
          const std::string wrong =
              verify_sample(oracle, {drawn.x, drawn.y}, &positions[2 * i], densities[i], &directions[3 * i]);
          if (!wrong.empty()) return wrong;
        }
        return "";
      },
      .verified_by = "oracle in long double, 32 samples",
  });
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
    bench_method(runner, method, "sun/" + size_name(shape, 1),
                 testing::make_map<float>(shape, 1, 0, MapPattern::kSun), samples);
    for (const std::int64_t n : {std::int64_t{100}, longest}) {
      std::string size = "/";  // in two steps: gcc 12 sees an overlap in one
      size += std::to_string(n);
      bench_method(runner, method, "power20" + size, line_of(n, power), samples);
      bench_method(runner, method, "mod32" + size, line_of(n, saw), samples);
      bench_method(runner, method, "mod64" + size, line_of(n, long_saw), samples);
      bench_method(runner, method, "spikes" + size, line_of(n, spikes), samples);
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
