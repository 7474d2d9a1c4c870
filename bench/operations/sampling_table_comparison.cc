#include "bench/operations/sampling_table_comparison.h"

#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/baselines/sampling_table_draws.h"
#include "bench/operations/sampling_table_maps.h"
#include "bench/operations/sampling_table_searches.h"
#include "bench/operations/sampling_table_subjects.h"

namespace cumulus::bench {
namespace {

using testing::TestMap;

struct NamedPoints {
  const char* name;
  PointSequence sequence;

  DrawParameters parameters(std::size_t count) const {
    return {.count = static_cast<std::int64_t>(count), .sequence = sequence, .seed = 0};
  }
};
constexpr NamedPoints kPoints[] = {{"random", PointSequence::kRandom},
                                   {"sobol", PointSequence::kSobol},
                                   {"hammersley", PointSequence::kHammersley}};

/// Points in the executor's memory, one sequence after another.
template <class Executor>
class PointsOfSequence {
 public:
  PointsOfSequence(Executor& executor, std::size_t count) : executor_(&executor), count_(count) {}

  std::size_t count() const { return count_; }
  Span<sampling::FixedPoint2, Executor::kSpace> of(const NamedPoints& named) {
    auto& points = points_[static_cast<std::size_t>(named.sequence)];
    if (!points) {
      const sampling_table::PointSource source(named.parameters(count_));
      std::vector<sampling::FixedPoint2> host(count_);
      for (std::size_t i = 0; i < count_; ++i) host[i] = source.point(static_cast<std::int64_t>(i));
      points.emplace(*executor_, host);
    }
    return points->span();
  }

 private:
  Executor* executor_;
  std::size_t count_;
  std::optional<Array<sampling::FixedPoint2, Executor>> points_[3];
};

template <class Executor>
using Points = Span<const sampling::FixedPoint2, Executor::kSpace>;

/// A table, what searches it, and the search's nodes.
template <class Executor>
struct SearchedTable {
  sampling::TableHeader header;
  Span<const std::byte, Executor::kSpace> bytes;
  Search search;
  Span<const std::uint32_t, Executor::kSpace> nodes;
};

void draw(CpuExecutor& executor, const SearchedTable<CpuExecutor>& table, Points<CpuExecutor> points,
          const DrawnSamples<Space::kHost>& samples) {
  sample_points(executor, table.header, table.bytes, points, 0, samples);
}
void draw(CudaExecutor& executor, const SearchedTable<CudaExecutor>& table, Points<CudaExecutor> points,
          const DrawnSamples<Space::kDevice>& samples) {
  draw_by_own_kernel(executor, table.search, table.nodes,
                     {sampling_table::view_of(table.header, table.bytes, 0),
                      {points.data()},
                      static_cast<std::uint32_t>(points.size()),
                      sampling_table::sample_arrays(samples)});
}

/// A map or a line, on which all methods are compared.
template <class Executor>
class Comparison {
 public:
  Comparison(Runner<Executor>& runner, std::string name, const TestMap<float>& map,
             PointsOfSequence<Executor>& points)
      : runner_(&runner), name_(std::move(name)), map_(&map), points_(&points) {}

  void measure(const Contender& named) {
    std::vector<const NamedPoints*> wanted;
    for (const NamedPoints& points : kPoints) {
      if (runner_->wants(row_name(points, named))) wanted.push_back(&points);
    }
    if (wanted.empty()) return;
    TableOnExecutor<float, Executor> table(runner_->executor(), *map_, named.method);
    table.build_now();
    const auto nodes = nodes_of(runner_->executor(), named, table.header(), table.to_host());
    for (const NamedPoints* points : wanted) {
      measure(named, *points, {table.header(), table.span(), named.search, nodes.span()});
    }
  }

 private:
  std::string row_name(const NamedPoints& points, const Contender& named) const {
    return "compare_methods/" + name_ + "/" + points.name + "/" + named.name + "/" +
           std::to_string(points_->count());
  }

  void measure(const Contender& named, const NamedPoints& named_points,
               const SearchedTable<Executor>& table) {
    constexpr std::size_t kChecked = 64;
    Executor& executor = runner_->executor();
    const std::size_t count = points_->count();
    const Points<Executor> points = points_->of(named_points);
    const SampleMemory<Executor> samples(executor, count, table.header);
    const auto verify = [&]() -> std::string {
      const std::string wrong = samples.verify(oracle(named.method), kChecked, [&](std::size_t i) {
        return oracle_point(named_points.parameters(count), i);
      });
      if (!wrong.empty() || named.method == sampling::Method::kAlias) return wrong;
      const std::uint64_t hash = samples.hash();
      auto& right = hashes_[static_cast<std::size_t>(named_points.sequence)];
      if (!right) right = hash;
      return *right == hash ? "" : "samples differ from those of the method before";
    };
    runner_->measure({
        .name = row_name(named_points, named),
        .bytes = sizeof(sampling::FixedPoint2) * count + samples.bytes(),
        .items = static_cast<double>(count),
        .unit = "samples",
        .scratch_bytes = 0,
        .run = [&] { draw(executor, table, points, samples.span()); },
        .verify = verify,
        .verified_by = verified_by_samples(kChecked) + ", all bits those of other monotone methods",
    });
  }

  const testing::OracleTable& oracle(sampling::Method method) {
    if (!oracle_)
      oracle_.emplace(oracle_table(*map_, oracle_options(*map_, sampling::Method::kBinarySearch)));
    oracle_->use_method(static_cast<int>(method));
    return *oracle_;
  }

  Runner<Executor>* runner_;
  std::string name_;
  const TestMap<float>* map_;
  PointsOfSequence<Executor>* points_;
  std::optional<testing::OracleTable> oracle_;
  std::optional<std::uint64_t> hashes_[3];  ///< Of a monotone method's samples of each sequence.
};

template <class Executor>
void compare(Runner<Executor>& runner, const std::string& name, const TestMap<float>& map,
             PointsOfSequence<Executor>& points) {
  constexpr bool kGpu = std::is_same_v<Executor, CudaExecutor>;
  Comparison<Executor> comparison(runner, name, map, points);
  for (const Contender& named : kContenders) {
    // The CPU backend has the library's methods only.
    if (!kGpu && named.search != Search::kOfTable) continue;
    if (is_quick(named, map)) comparison.measure(named);
  }
}

template <class Executor>
void compare_all(Runner<Executor>& runner) {
  constexpr bool kGpu = std::is_same_v<Executor, CudaExecutor>;
  const std::size_t count = runner.quick() ? std::size_t{1} << 20 : kGpu ? 100'000'000 : 250'000;
  PointsOfSequence<Executor> points(runner.executor(), count);
  const std::int64_t longest = runner.quick() ? 1 << 12 : 1 << 20;
  for (const std::int64_t n : {std::int64_t{100}, longest}) {
    for (const NamedLine& line : kLines) {
      const TestMap<float> map = line_of(n, line.weight);
      const std::string name = std::string(line.name) + "/" + std::to_string(n);
      compare(runner, name, map, points);
      if constexpr (kGpu) bench_searches(runner, name, map);
    }
  }
  for (const std::string& path : runner.maps()) {
    const TestMap<float> photograph = read_map(path);
    for (const testing::MapShape shape : {testing::MapShape{1024, 2048}, {4096, 8192}}) {
      if (runner.quick() && shape.height > 1024) continue;
      const std::string name = std::filesystem::path(path).stem().string() + "/" +
                               std::to_string(shape.height) + "x" + std::to_string(shape.width);
      compare(runner, name, resized(photograph, shape), points);
    }
  }
}

}  // namespace

void bench_comparison(Runner<CpuExecutor>& runner) { compare_all(runner); }
void bench_comparison(Runner<CudaExecutor>& runner) { compare_all(runner); }

}  // namespace cumulus::bench
