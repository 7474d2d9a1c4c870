#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bench/harness/bench.h"
#include "bench/operations/kd_tree_forest.h"
#include "kernels/kd_tree/kd_tree_query.h"
#include "kernels/kd_tree/scratch.h"
#include "tests/cases/kd_tree_case.h"
#include "tests/cases/neighbor_case.h"

// What the benchmark of KD-trees asks them.

namespace cumulus::bench {

/// Points in the order of their Morton codes, 10 bits an axis.
inline std::vector<float> in_morton_order(const std::vector<float>& points) {
  std::vector<std::pair<std::uint32_t, std::size_t>> order(points.size() / 3);
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::uint32_t code = 0;
    for (int bit = 9; bit >= 0; --bit) {
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const float x = std::clamp(points[3 * i + axis], 0.0f, 1.0f) * 1023.0f;
        code = code << 1 | (static_cast<std::uint32_t>(x) >> bit & 1u);
      }
    }
    order[i] = {code, i};
  }
  std::sort(order.begin(), order.end());
  std::vector<float> sorted(points.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::memcpy(&sorted[3 * i], &points[3 * order[i].second], 3 * sizeof(float));
  }
  return sorted;
}

/// A tree and what is asked of it.
template <class T>
struct Question {
  std::int64_t points;
  int dimensions;
  std::int64_t queries;
  testing::CloudPattern pattern = testing::CloudPattern::kUniform;
  bool sorted = false;  // queries in Morton order
  double period = 0;    // of every axis
  double radius = std::numeric_limits<double>::infinity();
  std::int64_t leaf_size = KdTreeOptions().leaf_size;
  KdTreeMedians medians = KdTreeMedians::kExact;

  KdTreeOptions options() const { return {leaf_size, KdTreeSplit::kWidestSpread, medians}; }
  KdTreeShape shape() const { return kd_tree_shape(1, points, dimensions, leaf_size); }
  std::string name(const std::string& wanted) const {
    return variant<T>(shape(), options(), pattern) + (period > 0 ? "/periodic" : "") +
           (sorted ? "/morton" : "/random") + "/" + wanted + "/" + std::to_string(points);
  }
  NeighborSearch search() const {
    NeighborSearch search;
    search.queries = queries;
    search.radius = radius;
    for (int axis = 0; axis < dimensions; ++axis) search.period[static_cast<std::size_t>(axis)] = period;
    return search;
  }
};

/// The tree of a question, built, and its queries.
template <class T, class Executor>
struct AskedTree {
  Forest<T, Executor> forest;
  std::vector<T> queries;
  Array<T, Executor> asked;
  NeighborSearch search;
  ReportMemory<NeighborReport, Executor> report;

  AskedTree(Executor& executor, const Question<T>& question)
      : forest(executor, question.shape(), question.options(),
               testing::make_cloud<T>(question.points, question.dimensions, question.pattern)),
        queries(make_queries(question)),
        asked(executor, queries),
        search(question.search()) {
    executor.reserve_scratch(forest.scratch_bytes(executor));
    forest.build(executor);
  }

  QueriedForest<T, Executor::kSpace> queried() const {
    return {forest.shape, forest.view(), {asked.span(), {}}, search};
  }
  std::vector<testing::Neighbor<T>> neighbors(std::int64_t query, T reach) const {
    const auto width = static_cast<std::size_t>(forest.shape.dimensions);
    return testing::neighbors_by_brute_force(forest.cloud, forest.shape.dimensions,
                                             &queries[static_cast<std::size_t>(query) * width], reach,
                                             search);
  }

 private:
  static std::vector<T> make_queries(const Question<T>& question) {
    std::vector<T> made = testing::make_cloud<T>(question.queries, question.dimensions, question.pattern, 2);
    if constexpr (std::is_same_v<T, float>) {
      if (question.sorted) return in_morton_order(made);
    }
    return made;
  }
};

/// Made when a row first wants it, and kept for the rows that follow.
template <class Made>
class Lazy {
 public:
  explicit Lazy(std::function<Made()> make) : make_(std::move(make)) {}

  const Made& get() {
    if (made_ == nullptr) made_.reset(new Made(make_()));
    return *made_;
  }

 private:
  std::function<Made()> make_;
  std::unique_ptr<Made> made_;
};

/// A question, and its tree once a row wants it.
template <class T, class Executor>
struct AskedLater {
  Question<T> question;
  Lazy<AskedTree<T, Executor>> tree;

  AskedLater(Executor& executor, const Question<T>& of)
      : question(of), tree([&executor, of] { return AskedTree<T, Executor>(executor, of); }) {}
};

inline constexpr int kVerifiedQueries = 16;

/// Which queries are verified.
inline std::vector<std::int64_t> verified_queries(std::int64_t queries) {
  std::vector<std::int64_t> verified;
  const std::int64_t step = std::max<std::int64_t>(1, queries / kVerifiedQueries);
  for (std::int64_t query = 0; query < queries; query += step) verified.push_back(query);
  return verified;
}

/// Rows of `width` elements, of the verified queries alone.
template <class T, class Executor>
std::vector<std::vector<T>> rows_of(const Array<T, Executor>& all, const std::vector<std::int64_t>& verified,
                                    int width) {
  std::vector<std::vector<T>> rows;
  for (const std::int64_t query : verified)
    rows.push_back(all.to_host(static_cast<std::size_t>(query * width), static_cast<std::size_t>(width)));
  return rows;
}

/// What `check(i)` says of the first verified query that it says anything of; all cores look.
template <class Check>
std::string first_difference(const std::vector<std::int64_t>& verified, const Check& check) {
  std::vector<std::future<std::string>> checks;
  for (std::size_t i = 0; i < verified.size(); ++i)
    checks.push_back(std::async(std::launch::async, [&check, i] { return check(i); }));
  std::string difference;
  for (std::future<std::string>& one : checks) {
    const std::string wrong = one.get();
    if (difference.empty()) difference = wrong;
  }
  return difference;
}

/// By `find(job, report)`, where the user wants `name`.
template <class T, class Executor, class Find>
void measure_nearest(Runner<Executor>& runner, AskedLater<T, Executor>& asked, int nearest,
                     const std::string& name, const Find& find) {
  if (!runner.wants(name)) return;
  const Question<T>& question = asked.question;
  Executor& executor = runner.executor();
  const AskedTree<T, Executor>& tree = asked.tree.get();
  const auto results = static_cast<std::size_t>(question.queries * nearest);
  const Array<std::int64_t, Executor> indices(executor, results);
  const Array<T, Executor> distances(executor, results);
  const NeighborSearch& search = tree.search;
  const NearestJob<T, Executor::kSpace> job{tree.queried(), nearest, indices.span(), distances.span()};
  runner.measure({
      .name = name,
      .bytes = tree.queries.size() * sizeof(T) + results * (sizeof(std::int64_t) + sizeof(T)),
      .items = static_cast<double>(question.queries),
      .unit = "queries",
      .scratch_bytes = find_nearest_scratch_bytes<T, Executor::kSpace>(tree.forest.shape, search, nearest),
      .run = [&] { find(job, tree.report.get()); },
      .verify =
          [&] {
            const auto verified = verified_queries(question.queries);
            const auto found = rows_of(indices, verified, nearest);
            const auto far = rows_of(distances, verified, nearest);
            return first_difference(verified, [&](std::size_t i) {
              // There must be as many within the last one's distance, which may have been rounded down.
              const T reach = std::nextafter(far[i].back(), std::numeric_limits<T>::infinity());
              return testing::verify_nearest(tree.neighbors(verified[i], reach), search, nearest,
                                             found[i].data(), far[i].data());
            });
          },
      .verified_by = "brute force, 16 queries",
  });
}

template <class T, class Executor>
void bench_nearest(Runner<Executor>& runner, AskedLater<T, Executor>& asked, int nearest) {
  measure_nearest(
      runner, asked, nearest, "find_nearest/" + asked.question.name("k-" + std::to_string(nearest)),
      [&](const auto& job, NeighborReport* report) { find_nearest(runner.executor(), job, report); });
}

template <class T, class Executor>
void bench_nearest(Runner<Executor>& runner, const Question<T>& question, int nearest) {
  AskedLater<T, Executor> asked(runner.executor(), question);
  bench_nearest(runner, asked, nearest);
}

/// Empty where `found(query)` is how many points there are within the radius, of some queries.
template <class T, class Executor, class Found>
std::string verify_counts(const AskedTree<T, Executor>& tree, const Found& found) {
  const std::int64_t step = std::max<std::int64_t>(1, tree.search.queries / kVerifiedQueries);
  for (std::int64_t i = 0; i < tree.search.queries; i += step) {
    const auto right =
        static_cast<std::int64_t>(tree.neighbors(i, static_cast<T>(tree.search.radius)).size());
    if (found(static_cast<std::size_t>(i)) == right) continue;
    return "query " + std::to_string(i) + " has " + std::to_string(right) +
           " points within the radius, not " + std::to_string(found(static_cast<std::size_t>(i)));
  }
  return "";
}

template <class Executor>
void bench_count(Runner<Executor>& runner, const Question<float>& question) {
  const std::string name = "count_within/" + question.name("radius");
  if (!runner.wants(name)) return;
  Executor& executor = runner.executor();
  const AskedTree<float, Executor> tree(executor, question);
  const Array<std::int64_t, Executor> counts(executor, static_cast<std::size_t>(question.queries));
  runner.measure({
      .name = name,
      .bytes = tree.queries.size() * sizeof(float) + counts.size() * sizeof(std::int64_t),
      .items = static_cast<double>(question.queries),
      .unit = "queries",
      .scratch_bytes = count_within_scratch_bytes<Executor::kSpace>(tree.forest.shape, tree.search),
      .run =
          [&] {
            count_within(executor, CountJob<float, Executor::kSpace>{tree.queried(), counts.span()},
                         tree.report.get());
          },
      .verify =
          [&] {
            const auto found = counts.to_host();
            return verify_counts(tree, [&](std::size_t i) { return found[i]; });
          },
      .verified_by = "brute force, 16 queries",
  });
}

template <class Executor>
void bench_list(Runner<Executor>& runner, const Question<float>& question, std::size_t room) {
  const std::string name = "list_within/" + question.name("radius");
  if (!runner.wants(name)) return;
  Executor& executor = runner.executor();
  const AskedTree<float, Executor> tree(executor, question);
  const Array<std::int64_t, Executor> offsets(executor, static_cast<std::size_t>(question.queries) + 1);
  const Array<std::int64_t, Executor> indices(executor, room);
  const Array<float, Executor> distances(executor, room);
  const ReportMemory<NeighborListReport, Executor> report;
  runner.measure({
      .name = name,
      .bytes = tree.queries.size() * sizeof(float) + offsets.size() * sizeof(std::int64_t) +
               room * (sizeof(std::int64_t) + sizeof(float)),
      .items = static_cast<double>(question.queries),
      .unit = "queries",
      .scratch_bytes = list_within_scratch_bytes<Executor::kSpace>(tree.forest.shape, tree.search),
      .run =
          [&] {
            list_within(executor,
                        ListJob<float, Executor::kSpace>{tree.queried(), offsets.span(), indices.span(),
                                                         distances.span()},
                        report.get());
          },
      .verify =
          [&] {
            const auto found = offsets.to_host();
            if (found.back() > static_cast<std::int64_t>(room))
              return "no room for " + std::to_string(found.back());
            return verify_counts(tree, [&](std::size_t i) { return found[i + 1] - found[i]; });
          },
      .verified_by = "brute force, counts of 16 queries",
  });
}

}  // namespace cumulus::bench
