#include "kernels/core/launch_slices.h"
#include "kernels/sampling_table/draw/draw.h"
#include "kernels/sampling_table/draw/samples.cuh"

namespace cumulus::sampling_table {
namespace {

using sampling::Method;
using sampling::TableView;

constexpr int kThreads = kDrawThreads;

// Numbers, as for kShared.
constexpr unsigned number_of(Method method) { return static_cast<unsigned>(method); }

/// Finds cells by a method that the compiler knows.
template <unsigned kMethod>
struct ByKnownMethod {
  __device__ explicit ByKnownMethod(const TableView& /*table*/) {}
  __device__ sampling::detail::Located operator()(const sampling::detail::Distribution& cells,
                                                  std::uint32_t x) const {
    return sampling::detail::locate(Method{kMethod}, cells, x);
  }
};
/// Finds cells by the table's method.
struct ByTheTables : sampling::detail::ByMethod {
  __device__ explicit ByTheTables(const TableView& table) : ByMethod{table.header.method} {}
};

/// Samples of a bilinear table.
/// owns: a thread has one sample.
/// reads: its point; the table.
/// writes: its sample.
/// waits for: nothing of other blocks, so that there is no deadlock.
/// source: cumulus/bilinear.h, which renderers include.
template <class Points>
__global__ void __launch_bounds__(kThreads)
    draw_bilinear_points(const __grid_constant__ sampling::TableView table,
                         const __grid_constant__ Points points, std::int64_t count, SampleArrays arrays) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const sampling::FixedPoint2 point = points.point(i);
  store_sample(sampling::sample_bilinear(table, point.x, point.y), i, arrays);
}

/// The kernels of one plan each.
template <bool kDirections, class Points>
struct DrawByPlan {
  CudaExecutor& executor;
  const DrawLaunch<Points>& draw;

  void operator()(const BilinearPlan& /*plan*/) const {
    launch(executor.stream(), draw_bilinear_points<Points>, {blocks_for(draw.count), kThreads}, draw.table,
           draw.points, std::int64_t{draw.count}, draw.arrays);
  }
  void operator()(const GlobalTablePlan& /*plan*/) const { by<ByTheTables>().draw_few(); }
  void operator()(const ReadyRowsPlan& plan) const { draw_rows<kReadyRows>(plan.shared_bytes); }
  void operator()(const RefinedRowsPlan& plan) const {
    draw_rows<kRefinedRows>(plan.shared_bytes, plan.guide);
  }
  void operator()(const SingleRowPlan& /*plan*/) const {
    if (draw.table.header.method == Method::kAlias) return by_alias().template draw_many<kSingleRow>(0);
    draw_rows<kSingleRow>(0);
  }
  void operator()(const ReadyColumnsPlan& plan) const {
    by<ByTheTables>().template draw_many<kReadyColumns>(plan.shared_bytes);
  }
  void operator()(const AliasRowsPlan& plan) const {
    by_alias().template draw_many<kAliasRows>(plan.shared_bytes);
  }

 private:
  template <class Locate>
  ConstantDraws<Locate, kDirections, Points> by() const {
    return {executor, draw, sampling::detail::rows_of(draw.table, draw.table.header.method)};
  }
  auto by_alias() const { return by<ByKnownMethod<number_of(Method::kAlias)>>(); }

  /// By a monotone method.
  template <unsigned kShared>
  void draw_rows(std::size_t shared_bytes, const RefinedGuideShape& guide = {}) const {
    switch (draw.table.header.method) {
      case Method::kBalancedForest:
        return by<ByKnownMethod<number_of(Method::kBalancedForest)>>().template draw_many<kShared>(
            shared_bytes, guide);
      case Method::kRadixForest:
        return by<ByKnownMethod<number_of(Method::kRadixForest)>>().template draw_many<kShared>(shared_bytes,
                                                                                                guide);
      case Method::kCutpointBinary:
        return by<ByKnownMethod<number_of(Method::kCutpointBinary)>>().template draw_many<kShared>(
            shared_bytes, guide);
      default:
        return by<ByTheTables>().template draw_many<kShared>(shared_bytes, guide);
    }
  }
};

/// Densities at points.
/// owns: a thread has one point of [begin, end).
/// reads: its point; the table.
/// writes: its density.
/// waits for: nothing of other blocks, so that there is no deadlock.
/// source: cumulus/sampling.h, which renderers include.
__global__ void __launch_bounds__(kThreads)
    evaluate_points(const __grid_constant__ sampling::TableView table, const float* coordinates,
                    int dimensions, std::int64_t begin, std::int64_t end, float* pdf) {
  const std::int64_t i = begin + static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= end) return;
  pdf[i] = density_at(table, coordinates, dimensions, i);
}

}  // namespace

template <class Points>
void draw_by(CudaExecutor& executor, const DrawPlan& plan, const DrawLaunch<Points>& draw) {
  if (draw.arrays.direction != nullptr) {
    std::visit(DrawByPlan<true, Points>{executor, draw}, plan);
  } else {
    std::visit(DrawByPlan<false, Points>{executor, draw}, plan);
  }
}

template void draw_by(CudaExecutor&, const DrawPlan&, const DrawLaunch<PointSource>&);
template void draw_by(CudaExecutor&, const DrawPlan&, const DrawLaunch<GivenPoints>&);

void evaluate(CudaExecutor& executor, const sampling::TableView& table, const float* coordinates,
              int dimensions, DeviceSpan<float> pdf) {
  launch_slices(executor, static_cast<std::int64_t>(pdf.size()),
                {.first = kFirstSamples, .most = kMaxSamples}, [&](std::int64_t begin, std::int64_t end) {
                  launch(executor.stream(), evaluate_points, {blocks_for(end - begin), kThreads}, table,
                         coordinates, dimensions, begin, end, pdf.data());
                });
}

}  // namespace cumulus::sampling_table
