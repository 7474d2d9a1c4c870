#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "bench/baselines/sampling_table_draws.h"
#include "bench/harness/bench.h"
#include "kernels/sampling_table/sampling_table.h"
#include "tests/cases/sampling_table_case.h"
#include "tests/cases/sampling_table_samples.h"

// Building tables of maps and drawing from them: what the rows of sampling tables share.

namespace cumulus::bench {

struct NamedMethod {
  const char* name;
  sampling::Method method;
};
inline constexpr NamedMethod kSamplingMethods[] = {{"radix-forest", sampling::Method::kRadixForest},
                                                   {"balanced-forest", sampling::Method::kBalancedForest},
                                                   {"cutpoint-binary", sampling::Method::kCutpointBinary},
                                                   {"binary-search", sampling::Method::kBinarySearch},
                                                   {"alias", sampling::Method::kAlias}};

/// Every search there is or was, by the table that it needs.
struct Contender {
  const char* name;
  sampling::Method method;
  Search search = Search::kOfTable;
};
inline constexpr Contender kContenders[] = {
    {"radix-forest", sampling::Method::kRadixForest},
    {"balanced-forest", sampling::Method::kBalancedForest},
    {"cutpoint-binary", sampling::Method::kCutpointBinary},
    {"binary-search", sampling::Method::kBinarySearch},
    {"alias", sampling::Method::kAlias},
    {"radix-forest-4", sampling::Method::kRadixForest, Search::kRadixForest4},
    {"cutpoint-linear", sampling::Method::kCutpointBinary, Search::kCutpointLinear},
    {"quaternary-tree", sampling::Method::kBinarySearch, Search::kQuaternaryTree},
    {"linear-search", sampling::Method::kBinarySearch, Search::kLinearSearch}};

/// Whether it walks through few cells only.
inline bool is_quick(const Contender& contender, const testing::TestMap<float>& map) {
  constexpr std::int64_t kFew = 256;
  return contender.search != Search::kLinearSearch || map.width <= kFew;
}

/// In the executor's memory, of a table that has been built.
template <class Executor>
Array<std::uint32_t, Executor> nodes_of(Executor& executor, const Contender& contender,
                                        const sampling::TableHeader& header,
                                        const std::vector<std::byte>& table) {
  const sampling::TableView view{header, reinterpret_cast<const unsigned char*>(table.data()), 0};
  return {executor, retired_nodes(contender.search, view)};
}

/// One row of n weights, like the distributions of Binder and Keller's Table 1.
struct NamedLine {
  const char* name;
  double (*weight)(std::int64_t i, std::int64_t n);
};
inline constexpr NamedLine kLines[] = {
    {"power20",
     [](std::int64_t i, std::int64_t n) {
       return std::pow(static_cast<double>(i + 1) / static_cast<double>(n), 20);
     }},
    {"mod32",
     [](std::int64_t i, std::int64_t /*n*/) { return std::pow(static_cast<double>(i % 32 + 1) / 32, 25); }},
    {"mod64",
     [](std::int64_t i, std::int64_t /*n*/) { return std::pow(static_cast<double>(i % 64 + 1) / 64, 35); }},
    {"spikes", [](std::int64_t i, std::int64_t n) {
       return i % (n / 4) == n / 8 ? 0.8 / 4 : 0.2 / static_cast<double>(n - 4);
     }}};

template <class Weight>
testing::TestMap<float> line_of(std::int64_t n, const Weight& weight) {
  testing::TestMap<float> map{1, n, 1, n, {}};
  for (std::int64_t i = 0; i < n; ++i) map.elements.push_back(static_cast<float>(weight(i, n)));
  return map;
}

/// A map is lat-long, a single row a line.
template <class T>
bool is_lat_long(const testing::TestMap<T>& map) {
  return map.height > 1;
}
template <class T>
testing::OracleOptions oracle_options(const testing::TestMap<T>& map, sampling::Method method) {
  return {.lat_long = is_lat_long(map), .method = static_cast<int>(method)};
}

/// A table in the executor's memory, with what it takes to build it.
template <class T, class Executor>
class TableOnExecutor {
 public:
  TableOnExecutor(Executor& executor, const testing::TestMap<T>& map,
                  sampling::Method method = SamplingTableParams{}.method)
      : executor_(&executor),
        params_{
            .height = map.height,
            .width = map.width,
            .projection = is_lat_long(map) ? sampling::Projection::kLatLong : sampling::Projection::kPlane,
            .method = method},
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
  void build_now() {
    executor_->reserve_scratch(scratch_bytes());
    build();
    executor_->synchronize();
  }
  std::size_t scratch_bytes() const { return sampling_table_scratch_bytes<Executor::kSpace>(params_); }
  sampling::TableHeader header() const { return sampling_table_header(params_); }
  Span<const std::byte, Executor::kSpace> span() const { return table_.span(); }
  std::size_t bytes() const { return table_.size(); }
  std::vector<std::byte> to_host() const { return table_.to_host(); }

 private:
  /// Pinned for a GPU, which otherwise makes the host wait in each build.
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

/// Compares the whole table with the oracle's where `rows` is 0, else that many of its rows.
template <class T, class Executor>
void measure_build(Runner<Executor>& runner, const std::string& name, const testing::TestMap<T>& map,
                   TableOnExecutor<T, Executor>& table, std::int64_t rows) {
  const testing::OracleOptions options = oracle_options(map, table.header().method);
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
                             : verify_sampling_table_rows(map, options, data, std::min(rows, map.height));
          },
      .verified_by =
          rows == 0 ? "serial oracle, every byte" : "serial oracle, up to " + std::to_string(rows) + " rows",
  });
}

/// The oracle's table of a map, made when it is first asked for. All methods but the alias table draw the
/// same samples, so that there is no need for the oracle to build what they search.
template <class T>
class OracleOfMap {
 public:
  OracleOfMap(const testing::TestMap<T>& map, sampling::Method method)
      : map_(&map), method_(method == sampling::Method::kAlias ? method : sampling::Method::kBinarySearch) {}

  const testing::OracleTable& table() {
    if (!table_) table_.emplace(oracle_table(*map_, oracle_options(*map_, method_)));
    return *table_;
  }

 private:
  const testing::TestMap<T>* map_;
  sampling::Method method_;
  std::optional<testing::OracleTable> table_;
};

inline testing::UnitPoint oracle_point(const DrawParameters& parameters, std::size_t i) {
  const auto index = static_cast<std::uint32_t>(i);
  if (parameters.sequence == PointSequence::kSobol) return testing::oracle_sobol_point(index);
  if (parameters.sequence == PointSequence::kHammersley)
    return testing::oracle_hammersley_point(index, static_cast<std::uint64_t>(parameters.count));
  const sampling::FixedPoint2 point = sampling::random_point(index, parameters.seed);
  return {point.x, point.y};
}

/// A number of all words and their places, as bench/baselines/sampling_table_draws.h has it for a GPU.
inline std::uint64_t hash_of(CpuExecutor& /*executor*/, HostSpan<const float> words) {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &words.data()[i], sizeof(bits));
    hash = (hash ^ bits) * 0x100000001B3u;
  }
  return hash;
}

/// Where samples go, of a lat-long table with their directions.
template <class Executor>
class SampleMemory {
 public:
  SampleMemory(Executor& executor, std::size_t count, const sampling::TableHeader& header)
      : executor_(&executor),
        position_(executor, 2 * count),
        direction_(executor, sampling::on_sphere(header.projection) ? 3 * count : 0),
        pdf_(executor, count) {}

  std::size_t bytes() const { return (position_.size() + direction_.size() + pdf_.size()) * sizeof(float); }

  DrawnSamples<Executor::kSpace> span() const { return {position_.span(), direction_.span(), pdf_.span()}; }

  /// Of all words.
  std::uint64_t hash() const {
    Executor& executor = *executor_;
    return hash_of(executor, position_.span()) ^ 3 * hash_of(executor, direction_.span()) ^
           5 * hash_of(executor, pdf_.span());
  }

  /// Compares `checked` of the samples, spread over all, with the oracle's at `point_at(i)`.
  template <class PointAt>
  std::string verify(const testing::OracleTable& oracle, std::size_t checked, const PointAt& point_at) const {
    for (std::size_t k = 0; k < checked; ++k) {
      const std::size_t i = k * (pdf_.size() - 1) / (checked - 1);
      const auto position = position_.to_host(2 * i, 2);
      const auto direction = direction_.size() == 0 ? std::vector<float>() : direction_.to_host(3 * i, 3);
      const std::string wrong = verify_sample(oracle, point_at(i), position.data(), pdf_.to_host(i, 1)[0],
                                              direction.empty() ? nullptr : direction.data());
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

 private:
  Executor* executor_;
  Array<float, Executor> position_;
  Array<float, Executor> direction_;
  Array<float, Executor> pdf_;
};

inline std::string verified_by_samples(std::size_t checked) {
  return "oracle in long double, " + std::to_string(checked) + " samples";
}

/// Draws all at once from a table that has been built; checks `checked` of the samples.
template <class T, class Executor>
void measure_draws(Runner<Executor>& runner, const std::string& name,
                   const TableOnExecutor<T, Executor>& table, OracleOfMap<T>& oracle,
                   const DrawParameters& parameters, std::size_t checked) {
  Executor& executor = runner.executor();
  const auto n = static_cast<std::size_t>(parameters.count);
  const SampleMemory<Executor> samples(executor, n, table.header());
  runner.measure({
      .name = name,
      .bytes = samples.bytes(),
      .items = static_cast<double>(n),
      .unit = "samples",
      .scratch_bytes = 0,
      .run = [&] { draw_samples(executor, table.header(), table.span(), parameters, samples.span()); },
      .verify =
          [&] {
            return samples.verify(oracle.table(), checked,
                                  [&](std::size_t i) { return oracle_point(parameters, i); });
          },
      .verified_by = verified_by_samples(checked),
  });
}

/// Points that are ready, as a renderer has them.
struct ReadyPoints {
  const char* name;
  bool grid;  ///< In the order of a grid; otherwise evenly spread, neighbours far from each other.

  sampling::FixedPoint2 point(std::size_t i, std::size_t count) const {
    if (!grid) {  // M. Roberts, "The Unreasonable Effectiveness of Quasirandom Sequences", 2018
      const auto index = static_cast<std::uint32_t>(i);
      return {index * 3242174889u, index * 2447445414u};
    }
    const auto side = static_cast<std::uint64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
    const std::uint64_t step = (std::uint64_t{1} << 32) / side;
    return {static_cast<std::uint32_t>(i % side * step + step / 2),
            static_cast<std::uint32_t>(i / side * step + step / 2)};
  }
};
inline constexpr ReadyPoints kReadyPoints[] = {{"spread", false}, {"grid", true}};

/// `count` of each kind in the executor's memory, made when they are first asked for.
template <class Executor>
class PointsOnExecutor {
 public:
  PointsOnExecutor(Executor& executor, std::size_t count) : executor_(&executor), count_(count) {}

  std::size_t count() const { return count_; }
  Span<sampling::FixedPoint2, Executor::kSpace> of(const ReadyPoints& ready) {
    auto& points = points_[ready.grid ? 1 : 0];
    if (!points) {
      std::vector<sampling::FixedPoint2> host(count_);
      for (std::size_t i = 0; i < count_; ++i) host[i] = ready.point(i, count_);
      points.emplace(*executor_, host);
    }
    return points->span();
  }

 private:
  Executor* executor_;
  std::size_t count_;
  std::optional<Array<sampling::FixedPoint2, Executor>> points_[2];
};

inline std::string points_name(const ReadyPoints& ready, const std::string& tail, std::int64_t count) {
  return "sample_points/" + std::string(ready.name) + "/" + tail + "/" + std::to_string(count);
}

/// Samples a table that has been built at points that are ready.
template <class T, class Executor>
void measure_points(Runner<Executor>& runner, const std::string& name,
                    const TableOnExecutor<T, Executor>& table, OracleOfMap<T>& oracle,
                    PointsOnExecutor<Executor>& all_points, const ReadyPoints& ready) {
  constexpr std::size_t kChecked = 32;
  Executor& executor = runner.executor();
  const std::size_t count = all_points.count();
  const auto points = all_points.of(ready);
  const SampleMemory<Executor> samples(executor, count, table.header());
  runner.measure({
      .name = name,
      .bytes = sizeof(sampling::FixedPoint2) * count + samples.bytes(),
      .items = static_cast<double>(count),
      .unit = "samples",
      .scratch_bytes = 0,
      .run = [&] { sample_points(executor, table.header(), table.span(), points, 0, samples.span()); },
      .verify =
          [&] {
            return samples.verify(oracle.table(), kChecked, [&](std::size_t i) -> testing::UnitPoint {
              const sampling::FixedPoint2 point = ready.point(i, count);
              return {point.x, point.y};
            });
          },
      .verified_by = verified_by_samples(kChecked),
  });
}

}  // namespace cumulus::bench
