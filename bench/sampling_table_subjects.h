#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/bench.h"
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
                                                   {"radix-forest-4", sampling::Method::kRadixForest4},
                                                   {"balanced-forest", sampling::Method::kBalancedForest},
                                                   {"cutpoint-binary", sampling::Method::kCutpointBinary},
                                                   {"cutpoint-linear", sampling::Method::kCutpointLinear},
                                                   {"binary-search", sampling::Method::kBinarySearch},
                                                   {"quaternary-tree", sampling::Method::kQuaternaryTree},
                                                   {"alias", sampling::Method::kAlias}};

/// A table in the executor's memory, with what it takes to build it.
template <class T, class Executor>
class TableOnExecutor {
 public:
  TableOnExecutor(Executor& executor, const testing::TestMap<T>& map,
                  sampling::Method method = sampling::Method::kRadixForest)
      : executor_(&executor),
        params_{.height = map.height, .width = map.width, .method = method},
        view_(nullptr, map.height, map.width, map.channels),
        weights_(executor, map.elements),
        table_(executor, sampling_table_bytes(params_)) {
    view_.data = weights_.data();
  }

  void build() { build_sampling_table(*executor_, view_, params_, table_.span(), &report_); }
  void build_now() {
    executor_->reserve_scratch(scratch_bytes());
    build();
    executor_->synchronize();
  }
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

/// Compares the whole table with the oracle's where `rows` is 0, else that many of its rows.
template <class T, class Executor>
void measure_build(Runner<Executor>& runner, const std::string& name, const testing::TestMap<T>& map,
                   TableOnExecutor<T, Executor>& table, std::int64_t rows) {
  const testing::OracleOptions options{.method = static_cast<int>(table.header().method)};
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

/// The oracle's table of a map, made when it is first asked for.
template <class T>
class OracleOfMap {
 public:
  OracleOfMap(const testing::TestMap<T>& map, sampling::Method method) : map_(&map), method_(method) {}

  const testing::OracleTable& table() {
    if (!table_) table_.emplace(oracle_table(*map_, {.method = static_cast<int>(method_)}));
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

/// Draws all at once from a table that has been built; checks `checked` of the samples, spread over all.
template <class T, class Executor>
void measure_draws(Runner<Executor>& runner, const std::string& name,
                   const TableOnExecutor<T, Executor>& table, OracleOfMap<T>& oracle,
                   const DrawParameters& parameters, std::size_t checked) {
  Executor& executor = runner.executor();
  const auto n = static_cast<std::size_t>(parameters.count);
  const Array<float, Executor> position(executor, 2 * n);
  const Array<float, Executor> direction(executor, 3 * n);
  const Array<float, Executor> pdf(executor, n);
  runner.measure({
      .name = name,
      .bytes = 6 * sizeof(float) * n,
      .items = static_cast<double>(n),
      .unit = "samples",
      .scratch_bytes = 0,
      .run =
          [&] {
            draw_samples(executor, table.header(), table.span(), parameters,
                         {position.span(), direction.span(), pdf.span()});
          },
      .verify = [&]() -> std::string {
        const auto positions = position.to_host();
        const auto directions = direction.to_host();
        const auto densities = pdf.to_host();
        for (std::size_t k = 0; k < checked; ++k) {
          const std::size_t i = k * (n - 1) / (checked - 1);
          const std::string wrong = verify_sample(oracle.table(), oracle_point(parameters, i),
                                                  &positions[2 * i], densities[i], &directions[3 * i]);
          if (!wrong.empty()) return wrong;
        }
        return "";
      },
      .verified_by = "oracle in long double, " + std::to_string(checked) + " samples",
  });
}

}  // namespace cumulus::bench
