#include "bench/operations/sampling_table_searches.h"

#include <algorithm>
#include <vector>

#include "bench/baselines/sampling_table_searches.h"
#include "bench/operations/sampling_table_subjects.h"

namespace cumulus::bench {
#if CUMULUS_WITH_CUDA
namespace {

constexpr std::uint32_t kThreads = 1u << 20;

/// Compares the sums of some threads, of each warp's searching lanes, with a bisection's.
std::string verify_searches(const TableOnExecutor<float, CudaExecutor>& table,
                            const std::vector<std::uint32_t>& found, std::uint32_t lanes) {
  constexpr std::uint32_t kChecked = 256;
  const sampling::TableHeader header = table.header();
  const auto bytes = table.to_host();
  const auto* const lower = reinterpret_cast<const std::uint32_t*>(bytes.data() + header.row_cdf_offset);
  for (std::uint32_t k = 0; k < kChecked; ++k) {
    const std::uint32_t thread = k * (kThreads / kChecked) + k % lanes;
    std::uint32_t expected = 0;
    for (std::uint32_t i = 0; i < kSearchesOfThread; ++i) {
      const std::uint32_t x = std::min(searched_point(thread, i), sampling::kEmptyTail - 1);
      expected += static_cast<std::uint32_t>(std::upper_bound(lower, lower + header.width, x) - lower - 1);
    }
    if (found[thread] != expected) return "thread " + std::to_string(thread) + " found other cells";
  }
  return "";
}

void measure_searches(Runner<CudaExecutor>& runner, const std::string& name,
                      const TableOnExecutor<float, CudaExecutor>& table, const SearchJob& job) {
  const Array<std::uint32_t, CudaExecutor> sums(runner.executor(), kThreads);
  runner.measure({
      .name = name,
      .bytes = table.bytes() + sums.size() * sizeof(std::uint32_t),
      .items = static_cast<double>(kThreads) / 32 * job.lanes * kSearchesOfThread,
      .unit = "searches",
      .scratch_bytes = 0,
      .run = [&] { search_cells(runner.executor(), job, sums.span()); },
      .verify = [&] { return verify_searches(table, sums.to_host(), job.lanes); },
      .verified_by = "upper_bound, 256 threads",
  });
}

}  // namespace

void bench_searches(Runner<CudaExecutor>& runner, const std::string& name,
                    const testing::TestMap<float>& map) {
  for (const Contender& contender : kContenders) {
    if (contender.method == sampling::Method::kAlias || !is_quick(contender, map)) continue;
    const std::string tail = std::string(contender.name) + "/" + name;
    const std::string of_warps = "search_cells/warps/" + tail;
    const std::string of_threads = "search_cells/threads/" + tail;
    if (!runner.wants(of_warps) && !runner.wants(of_threads)) continue;
    TableOnExecutor<float, CudaExecutor> table(runner.executor(), map, contender.method);
    table.build_now();
    const auto nodes = nodes_of(runner.executor(), contender, table.header(), table.to_host());
    const SearchJob by_warps{sampling_table::view_of(table.header(), table.span(), 0), contender.search,
                             nodes.span(), 32};
    SearchJob by_threads = by_warps;
    by_threads.lanes = 1;
    if (runner.wants(of_warps)) measure_searches(runner, of_warps, table, by_warps);
    if (runner.wants(of_threads)) measure_searches(runner, of_threads, table, by_threads);
  }
}
#else
void bench_searches(Runner<CudaExecutor>& /*runner*/, const std::string& /*name*/,
                    const testing::TestMap<float>& /*map*/) {}
#endif

}  // namespace cumulus::bench
