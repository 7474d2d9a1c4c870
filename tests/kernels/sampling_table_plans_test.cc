#include <gtest/gtest.h>

#include "tests/cases/sampling_table_case.h"
#include "tests/support/executors.h"
#include "tests/support/sampling_table_builds.h"
#include "tests/support/sampling_table_view.h"
#if CUMULUS_WITH_CUDA

#include "kernels/sampling_table/build.h"
#include "kernels/sampling_table/draw/draw.h"
#include "kernels/sampling_table/tuning.h"

// The plans for devices with less shared memory, on the device that is there.

namespace cumulus::sampling_table {
namespace {

using sampling::Interpolation;
using sampling::Method;

constexpr DeviceNumbers kDesktop{.multiprocessors = 128, .block_shared_bytes = 99 * 1024};
constexpr DeviceNumbers kSmallGpu{.multiprocessors = 20, .block_shared_bytes = 48 * 1024};
/// None like it exists: it brings what is for large tables to small ones.
constexpr DeviceNumbers kTiny{.multiprocessors = 1, .block_shared_bytes = 4 * 1024};

class SamplingTablePlansOnCuda : public testing::OnEveryBackend<testing::CudaBackend> {
 protected:
  /// The table of `map` by the plan for `device`, on the device that is there.
  template <class T>
  testing::BuiltTable build(const testing::TestMap<T>& map, SamplingTableParams params,
                            const DeviceNumbers& device) {
    params.height = map.height / params.layers;
    params.width = map.width;
    testing::BackendArray<testing::CudaBackend, T> elements(backend(), map.elements);
    testing::BackendArray<testing::CudaBackend, unsigned char> table(backend(), sampling_table_bytes(params));
    const DeviceImage<const T> weights(elements.const_span().data(), map.height, map.width, map.channels,
                                       map.row_stride);
    const BuildPlan plan = choose(params, device);
    executor().reserve_scratch(plan.scratch_bytes);
    testing::BuiltTable built;
    build_by(executor(), plan, weights, params,
             {reinterpret_cast<std::byte*>(table.span().data()), table.span().size()}, &built.report);
    EXPECT_EQ(executor().scratch_arena().used_bytes(), plan.scratch_bytes);
    executor().synchronize();
    built.table = table.to_host();
    return built;
  }

  template <class T>
  void expect_same_by_all_plans(const testing::TestMap<T>& map, const SamplingTableParams& params) {
    testing::CpuBackend cpu;
    const testing::BuiltTable right = build_table(cpu, map, params);
    for (const DeviceNumbers& device : {kDesktop, kSmallGpu, kTiny}) {
      const testing::BuiltTable built = build(map, params, device);
      EXPECT_EQ(built.report.outcome, right.report.outcome);
      EXPECT_TRUE(built.table == right.table) << map.height << " x " << map.width << ", "
                                              << device.block_shared_bytes << " bytes of shared memory";
    }
  }
};

TEST_F(SamplingTablePlansOnCuda, BuildTheSameTableByEveryMethod) {
  using testing::MapPattern;
  for (const testing::MapShape shape : {testing::MapShape{5, 13001}, {13001, 5}, {600, 700}, {64, 16368}}) {
    for (const MapPattern pattern : {MapPattern::kZeroBands, MapPattern::kAllScales}) {
      const auto map = testing::make_map<float>(shape, 1, 0, pattern);
      for (const int method : testing::kSamplingMethods)
        expect_same_by_all_plans(map, {.method = static_cast<Method>(method)});
    }
  }
}

TEST_F(SamplingTablePlansOnCuda, BuildTheSameTableOfAnyWeights) {
  using testing::MapPattern;
  expect_same_by_all_plans(testing::make_map<std::uint8_t>({600, 701}, 3, 5, MapPattern::kRandom), {});
  const auto map = testing::make_map<float>({1200, 777}, 4, 3, MapPattern::kSun);
  expect_same_by_all_plans(map, {.layers = 2, .mis_compensation = true});
  expect_same_by_all_plans(map, {.layers = 2, .interpolation = Interpolation::kBilinear});
  auto invalid = testing::make_map<float>({2, 13001}, 1, 0, MapPattern::kRandom);
  invalid.at(1, 12345) = -1.0F;
  const testing::BuiltTable built = build(invalid, {}, kSmallGpu);
  EXPECT_EQ(built.report.outcome, SamplingTableReport::Outcome::kInvalidWeight);
  EXPECT_EQ(built.report.x, 12345);
  EXPECT_EQ(built.report.y, 1);
}

TEST_F(SamplingTablePlansOnCuda, DrawTheSameSamples) {
  constexpr std::int64_t kCount = kMinSharedSamples + 77;
  const PointSource points({.count = kCount, .sequence = PointSequence::kRandom, .seed = 5});
  for (const testing::MapShape shape :
       {testing::MapShape{1536, 40}, {1, 3000}, {1, 1}, {1024, 31}, {2600, 12}, {5000, 6}, {9000, 5}}) {
    for (const int method : testing::kSamplingMethods) {
      testing::CpuBackend cpu;
      const auto map = testing::make_map<float>(shape, 1, 0, testing::MapPattern::kSun);
      const auto built = build_table(cpu, map, {.method = static_cast<Method>(method)});
      const testing::BackendArray<testing::CudaBackend, unsigned char> table(backend(), built.table);
      sampling::TableView view = testing::view_of(built.table);
      view.data = table.const_span().data();
      const auto draw = [&](const DrawPlan& plan) {
        testing::BackendArray<testing::CudaBackend, float> samples(backend(), 6 * kCount);
        float* const out = samples.span().data();
        draw_by<PointSource>(executor(), plan,
                             {view, points, kCount, {out, out + 2 * kCount, out + 5 * kCount}});
        return samples.to_host();
      };
      const std::vector<float> right = draw(GlobalTablePlan{});
      for (const DeviceNumbers& device : {executor().device().numbers(), kDesktop, kSmallGpu, kTiny}) {
        EXPECT_TRUE(draw(choose(DrawJob{view.header, kCount, true}, device)) == right)
            << shape.height << " rows, method " << method << ", " << device.block_shared_bytes << " bytes";
      }
    }
  }
}

}  // namespace
}  // namespace cumulus::sampling_table

#endif
