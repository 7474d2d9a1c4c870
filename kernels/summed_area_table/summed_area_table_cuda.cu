#include <stdexcept>
#include <variant>

#include "kernels/summed_area_table/check.h"
#include "kernels/summed_area_table/method.h"
#include "kernels/summed_area_table/summed_area_table.h"

namespace cumulus {
namespace summed_area_table {
namespace {

/// Puts a plan's kernels on the stream. The chooser names a method only for pairs that it is compiled for.
template <class Input, class Sum>
struct Build {
  CudaExecutor& executor;
  const TableJob<Input, Sum, Space::kDevice>& job;
  DeviceSpan<std::byte> scratch;

  static constexpr ElementPair kTypes = kElementPair<Input, Sum>;

  void operator()(const LookBackPlan& plan) const { build_by_look_back(executor, job, plan, scratch); }
  void operator()(const ResidentPlan& plan) const {
    if constexpr (has_resident_tiles(kTypes)) return build_resident(executor, job, plan);
    refuse_types();
  }
  void operator()(const StripsPlan& plan) const {
    if constexpr (has_strips(kTypes)) return build_in_strips(executor, job, plan);
    refuse_types();
  }

 private:
  [[noreturn]] static void refuse_types() {
    throw std::logic_error("summed_area_table: the chosen method is not compiled for these types");
  }
};

}  // namespace
}  // namespace summed_area_table

template <class Input, class Sum>
void build_summed_area_table(CudaExecutor& executor, const TableJob<Input, Sum, Space::kDevice>& job) {
  using namespace summed_area_table;
  check_job(job);
  executor.check_interrupt();
  executor.bind_thread();
  const Plan plan = choose(build_shape(job), executor.numbers());
  const auto scratch = executor.scratch<std::byte>(scratch_bytes(plan));
  std::visit(Build<Input, Sum>{executor, job, scratch}, plan);
}

#define CUMULUS_ON_CUDA(Input, Sum) \
  template void build_summed_area_table(CudaExecutor&, const TableJob<Input, Sum, Space::kDevice>&)
CUMULUS_SUMMED_AREA_TABLE_PAIRS(CUMULUS_ON_CUDA);

}  // namespace cumulus
