#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/sampling_table/method.h"
#include "kernels/sampling_table/scratch.h"
#include "kernels/sampling_table/tuning.h"
#include "tests/cases/sampling_table_case.h"
#include "tests/support/gpus.h"

// Which way serves which table, on which GPU.

namespace cumulus::sampling_table {
namespace {

using sampling::Interpolation;
using sampling::Method;
using sampling::Projection;

using testing::kH200;
using testing::kRtx4090;
constexpr DeviceNumbers kSmall{.architecture = 75,
                               .multiprocessors = 20,
                               .multiprocessor_threads = 1024,
                               .multiprocessor_shared_bytes = 48 * 1024,
                               .block_shared_bytes = 48 * 1024,
                               .l2_bytes = 1024 * 1024};
std::string name_of(const RegisterBlockedPlan& plan) {
  constexpr const char* kLookups[] = {"", " cutpoints", " ranges", " trees"};
  return "registers " + std::to_string(plan.threads) + kLookups[static_cast<int>(plan.lookup)];
}
std::string name_of(const BlockPlan& plan) {
  return "block " + std::to_string(plan.threads) + (plan.guides ? " guides" : "");
}
std::string name_of(const ThreePassPlan& /*plan*/) { return "three passes"; }
std::string name_of(const TiledPlan& plan) { return "tiled " + std::to_string(plan.row_tiles); }

std::string name_of(const BuildPlan& plan) {
  const auto name = [](const auto& of_method) { return name_of(of_method); };
  return std::string(plan.reduces ? "reduction, " : "") + (plan.writes_vertices ? "vertices, " : "") +
         std::visit(name, plan.rows) + "; " + std::visit(name, plan.marginals);
}

std::string name_of(const DrawPlan& plan) {
  struct Names {
    std::string operator()(const BilinearPlan&) const { return "bilinear"; }
    std::string operator()(const GlobalTablePlan&) const { return "global"; }
    std::string operator()(const ReadyRowsPlan& ready) const {
      return "rows " + std::to_string(ready.shared_bytes);
    }
    std::string operator()(const RefinedRowsPlan& refined) const {
      return "guide x" + std::to_string(refined.guide.cells_each) + (refined.guide.bands ? " bands " : " ") +
             std::to_string(refined.shared_bytes);
    }
    std::string operator()(const SingleRowPlan&) const { return "single row"; }
    std::string operator()(const ReadyColumnsPlan& ready) const {
      return "columns " + std::to_string(ready.shared_bytes);
    }
    std::string operator()(const AliasRowsPlan& rows) const {
      return "alias copy " + std::to_string(rows.shared_bytes);
    }
  };
  return std::visit(Names{}, plan);
}

/// The choice for the same job on each device.
struct Choices {
  const char* h200;
  const char* desktop = h200;
  const char* small = desktop;
};

struct BuildChoice {
  SamplingTableParams params;
  Choices right;  ///< Rows; marginals.
};

/// By trees, which take the most shared memory.
SamplingTableParams forest(SamplingTableParams params) {
  params.method = Method::kRadixForest;
  return params;
}

const BuildChoice kBuildChoices[] = {
    {forest({.height = 512, .width = 1024}), {"registers 128 trees; registers 128 trees"}},
    {forest({.height = 1024, .width = 2048}), {"registers 128 trees; registers 128 trees"}},
    {forest({.height = 2048, .width = 4096}), {"registers 256 trees; registers 128 trees"}},
    {forest({.height = 4096, .width = 8192}),
     {"registers 512 trees; registers 256 trees", "registers 512 trees; registers 256 trees",
      "block 512; registers 256 trees"}},
    {forest({.height = 8192, .width = 16384}),
     {"registers 1024 trees; registers 512 trees", "block 1024; registers 512 trees",
      "three passes; block 1024"}},
    {forest({.height = 1080, .width = 1920}), {"registers 128 trees; block 512 guides"}},
    {forest({.height = 540, .width = 960}), {"registers 128 trees; block 256 guides"}},
    {forest({.layers = 16, .height = 1080, .width = 1920}), {"registers 128 trees; block 512 guides"}},
    {forest({.height = 100, .width = 1600}), {"registers 128 trees; block 128 guides"}},
    {forest({.height = 1, .width = 1}), {"block 128 guides; block 128 guides"}},
    {forest({.height = 31, .width = 37}), {"block 128 guides; block 128 guides"}},
    {forest({.height = 16, .width = 16}), {"block 128 guides; block 128 guides"}},
    {forest({.height = 1, .width = 517}), {"block 128 guides; block 128 guides"}},
    {forest({.height = 517, .width = 1}), {"block 128 guides; block 256 guides"}},
    {forest({.height = 1, .width = 16384}),
     {"registers 1024 trees; block 128 guides", "block 1024; block 128 guides",
      "three passes; block 128 guides"}},
    {forest({.height = 16384, .width = 1}),
     {"block 128 guides; registers 1024 trees", "block 128 guides; block 1024",
      "block 128 guides; three passes"}},
    {forest({.height = 1, .width = 32767}),
     {"block 1024; block 128 guides", "three passes; block 128 guides"}},
    {forest({.height = 1, .width = 32768}),
     {"block 1024; block 128 guides", "three passes; block 128 guides"}},
    {forest({.height = 1, .width = 32769}), {"tiled 9; block 128 guides"}},
    {forest({.height = 1, .width = 1048576}), {"tiled 256; block 128 guides"}},
    {forest({.height = 1, .width = 4194304}), {"tiled 1024; block 128 guides"}},
    {forest({.height = 32768, .width = 3}),
     {"block 128 guides; block 1024", "block 128 guides; three passes"}},
    {forest({.height = 3, .width = 32768}),
     {"block 1024; block 128 guides", "three passes; block 128 guides"}},
    {forest({.height = 32768, .width = 32768}), {"block 1024; block 1024", "three passes; three passes"}},
    {forest({.height = 32767, .width = 12000}),
     {"registers 1024 trees; block 1024", "block 512 guides; three passes", "three passes; three passes"}},
    {forest({.height = 2, .width = 24577}),
     {"block 1024 guides; block 128 guides", "block 1024; block 128 guides",
      "three passes; block 128 guides"}},
    {forest({.height = 13001, .width = 13001}),
     {"block 1024 guides; block 1024 guides", "block 1024; block 1024", "three passes; three passes"}},
    {forest({.height = 13000, .width = 25000}),
     {"block 1024 guides; block 1024 guides", "three passes; block 1024", "three passes; three passes"}},
    {forest({.height = 16400, .width = 17000}),
     {"block 1024 guides; block 1024 guides", "block 1024; block 1024", "three passes; three passes"}},
    {forest({.height = 64, .width = 8193}),
     {"block 512 guides; registers 128 trees", "block 512 guides; registers 128 trees",
      "block 512; registers 128 trees"}},
    {forest({.height = 64, .width = 8208}),
     {"block 512 guides; registers 128 trees", "block 512 guides; registers 128 trees",
      "block 512; registers 128 trees"}},
    {forest({.height = 64, .width = 16368}),
     {"block 1024 guides; registers 128 trees", "block 1024; registers 128 trees",
      "three passes; registers 128 trees"}},
    {forest({.height = 512, .width = 512, .projection = Projection::kEqualArea}),
     {"registers 128 trees; registers 128 trees"}},
    {forest({.height = 2048, .width = 2048, .projection = Projection::kEqualArea}),
     {"registers 128 trees; registers 128 trees"}},
    {forest({.layers = 4096, .height = 256, .width = 256, .projection = Projection::kPlane}),
     {"registers 128 trees; registers 128 trees"}},
    {forest({.layers = 65536, .height = 64, .width = 64, .projection = Projection::kPlane}),
     {"registers 128 trees; registers 128 trees"}},
    {{.height = 2048, .width = 4096}, {"registers 256 ranges; registers 128 ranges"}},
    {{.height = 1024, .width = 2048}, {"registers 128 ranges; registers 128 ranges"}},
    {{.height = 4096, .width = 8192},
     {"registers 512 ranges; registers 256 ranges", "registers 512 ranges; registers 256 ranges",
      "block 512; registers 256 ranges"}},
    {{.height = 8192, .width = 16384},
     {"registers 1024 ranges; registers 512 ranges", "registers 1024 ranges; registers 512 ranges",
      "three passes; block 1024"}},
    {{.height = 1080, .width = 1920}, {"registers 128 ranges; block 512 guides"}},
    {{.height = 1, .width = 1048576}, {"tiled 256; block 128 guides"}},
    {{.height = 2048, .width = 4096, .method = Method::kBinarySearch}, {"registers 256; registers 128"}},
    {{.height = 2048, .width = 4096, .method = Method::kCutpointBinary},
     {"registers 256 cutpoints; registers 128 cutpoints"}},
    {{.height = 2048, .width = 4096, .method = Method::kAlias}, {"registers 256; registers 128"}},
    {{.height = 8192, .width = 16384, .method = Method::kCutpointBinary},
     {"registers 1024 cutpoints; registers 512 cutpoints",
      "registers 1024 cutpoints; registers 512 cutpoints", "three passes; block 1024"}},
    {{.height = 8192, .width = 16384, .method = Method::kAlias},
     {"registers 1024; registers 512", "registers 1024; registers 512", "three passes; registers 512"}},
    {{.height = 4000, .width = 30000, .method = Method::kCutpointBinary},
     {"block 1024; registers 256 cutpoints", "three passes; registers 256 cutpoints"}},
    {forest({.height = 1024, .width = 2048, .row_guide_size = 32}),
     {"registers 128 trees; registers 128 trees"}},
    {forest({.height = 1024, .width = 2048, .row_guide_size = 1000}),
     {"block 128 guides; registers 128 trees"}},
    {forest({.height = 1024, .width = 2048, .row_guide_size = 65536}), {"block 128; registers 128 trees"}},
    {forest({.height = 64, .width = 16384, .row_guide_size = 32768}),
     {"registers 1024 trees; registers 128 trees", "block 1024; registers 128 trees",
      "three passes; registers 128 trees"}},
    {forest({.height = 1024, .width = 2048, .row_guide_size = 16777216}), {"block 128; registers 128 trees"}},
    {forest({.height = 1024, .width = 2048, .interpolation = Interpolation::kBilinear}),
     {"vertices, block 256 guides; block 512 guides"}},
    {forest({.height = 2048, .width = 4095, .interpolation = Interpolation::kBilinear}),
     {"vertices, block 256 guides; block 512 guides"}},
    {forest({.height = 1080, .width = 1920, .interpolation = Interpolation::kBilinear}),
     {"vertices, block 128 guides; block 512 guides"}},
    {forest({.height = 1, .width = 100000, .interpolation = Interpolation::kBilinear}),
     {"vertices, tiled 25; block 128 guides"}},
    {forest({.height = 1024, .width = 2048, .mis_compensation = true}),
     {"reduction, registers 128 trees; registers 128 trees"}},
    {forest({.layers = 3, .height = 64, .width = 1000, .uniform_if_all_zero = true}),
     {"reduction, block 128 guides; registers 128 trees"}},
};

TEST(SamplingTableMethod, IsChosenForEachBuild) {
  for (const BuildChoice& choice : kBuildChoices) {
    const SamplingTableParams& params = choice.params;
    SCOPED_TRACE(std::to_string(params.layers) + " x " + std::to_string(params.height) + " x " +
                 std::to_string(params.width) + ", method " +
                 std::to_string(static_cast<int>(params.method)));
    EXPECT_EQ(name_of(choose(params, kH200)), choice.right.h200);
    EXPECT_EQ(name_of(choose(params, kRtx4090)), choice.right.desktop);
    EXPECT_EQ(name_of(choose(params, kSmall)), choice.right.small);
  }
}

struct DrawChoice {
  SamplingTableParams params;
  std::uint32_t samples;
  bool directions;
  Choices right;
};

constexpr std::uint32_t kFew = kMinSharedSamples - 1;
constexpr std::uint32_t kMany = kMinSharedSamples;

const DrawChoice kDrawChoices[] = {
    {{.height = 512, .width = 1024}, kFew, true, {"global"}},
    {{.height = 512, .width = 1024}, kMany, true, {"rows 16404"}},
    {{.height = 1024, .width = 2048}, kMany, true, {"rows 32788"}},
    {{.height = 1024, .width = 2048}, kMany, false, {"rows 32788"}},
    {{.height = 1152, .width = 2304}, kMany, false, {"rows 36884"}},
    {{.height = 1536, .width = 3072}, kMany, true, {"rows 49172", "rows 49172", "guide x2 bands 24596"}},
    {{.height = 1536, .width = 3072}, kMany, false, {"rows 49172", "rows 49172", "guide x2 bands 24596"}},
    {{.height = 2048, .width = 4096}, kMany, true, {"rows 65556", "rows 65556", "guide x2 bands 32788"}},
    {{.height = 2400, .width = 4800}, kMany, true, {"guide x2 bands 38420"}},
    {{.height = 4096, .width = 8192},
     kMany,
     true,
     {"guide x2 bands 65556", "guide x2 bands 65556", "guide x2 32788"}},
    {{.height = 4096, .width = 8192, .projection = Projection::kPlane},
     kMany,
     false,
     {"guide x4 49172", "guide x4 49172", "guide x2 32788"}},
    {{.height = 8192, .width = 16384}, kMany, true, {"guide x2 65556", "guide x2 65556", "global"}},
    {{.height = 12000, .width = 24000}, kMany, true, {"guide x1 72020", "guide x1 72020", "global"}},
    {{.height = 16384, .width = 32768}, kMany, false, {"global"}},
    {{.height = 1024, .width = 1024, .projection = Projection::kEqualArea}, kMany, true, {"rows 32788"}},
    {{.height = 1080, .width = 1920, .projection = Projection::kPlane}, kMany, false, {"rows 34580"}},
    {{.height = 1, .width = 1000, .projection = Projection::kPlane}, kMany, false, {"columns 20020"}},
    {{.height = 1, .width = 3000, .projection = Projection::kPlane},
     kMany,
     false,
     {"columns 60020", "columns 60020", "single row"}},
    {{.height = 1, .width = 4000, .projection = Projection::kPlane}, kMany, false, {"single row"}},
    {{.height = 1, .width = 1048576, .projection = Projection::kPlane}, kMany, false, {"single row"}},
    {{.height = 1024, .width = 2048, .method = Method::kCutpointBinary}, kMany, true, {"rows 32788"}},
    {{.height = 1024, .width = 2048, .method = Method::kBinarySearch}, kMany, false, {"rows 32788"}},
    {{.height = 1024, .width = 2048, .method = Method::kAlias}, kMany, true, {"alias copy 12288"}},
    {{.height = 2048, .width = 4096, .method = Method::kAlias}, kMany, true, {"alias copy 24576"}},
    {{.height = 4096, .width = 8192, .method = Method::kAlias},
     kMany,
     true,
     {"alias copy 49152", "alias copy 49152", "global"}},
    {{.height = 8192, .width = 16384, .method = Method::kAlias}, kMany, true, {"global"}},
    {{.height = 1, .width = 1000, .projection = Projection::kPlane, .method = Method::kAlias},
     kMany,
     false,
     {"single row"}},
    {{.height = 1, .width = 1, .projection = Projection::kPlane, .method = Method::kAlias},
     kMany,
     false,
     {"single row"}},
    {{.height = 1, .width = 4000, .projection = Projection::kPlane, .method = Method::kAlias},
     kMany,
     false,
     {"single row"}},
    {{.height = 1024, .width = 2048, .interpolation = Interpolation::kBilinear}, kMany, true, {"bilinear"}},
    {{.height = 1024, .width = 2048, .marginal_guide_size = 65536}, kMany, true, {"rows 32788"}},
};

TEST(SamplingTableMethod, IsChosenForEachDraw) {
  for (const DrawChoice& choice : kDrawChoices) {
    const sampling::TableHeader header = sampling_table_header(choice.params);
    const DrawJob job{header, choice.samples, choice.directions};
    SCOPED_TRACE(std::to_string(header.height) + " x " + std::to_string(header.width) + ", method " +
                 std::to_string(static_cast<int>(header.method)));
    EXPECT_EQ(name_of(choose(job, kH200)), choice.right.h200);
    EXPECT_EQ(name_of(choose(job, kRtx4090)), choice.right.desktop);
    EXPECT_EQ(name_of(choose(job, kSmall)), choice.right.small);
  }
}

/// Calls `check` for many jobs on many devices.
template <class Check>
void for_many_jobs(const Check& check) {
  for (const std::int64_t height : {1, 2, 16, 100, 1024, 1080, 8192, 16384, 16400, 32768}) {
    for (const std::int64_t width : {1, 16, 31, 512, 2048, 4096, 8192, 12288, 16384, 16385, 32768}) {
      for (const int method : testing::kSamplingMethods) {
        for (const Interpolation interpolation : {Interpolation::kConstant, Interpolation::kBilinear}) {
          const SamplingTableParams params{.layers = 3,
                                           .height = height,
                                           .width = width,
                                           .interpolation = interpolation,
                                           .method = static_cast<Method>(method)};
          for (const DeviceNumbers& device : {kH200, kRtx4090, kSmall}) check(params, device);
        }
      }
    }
  }
}

std::size_t shared_bytes_of(const RegisterBlockedPlan& plan) { return plan.shared_bytes + kSlotAlignment; }
std::size_t shared_bytes_of(const BlockPlan& plan) { return plan.shared_bytes + kBlockStaticBytes; }
std::size_t shared_bytes_of(const ThreePassPlan& /*plan*/) { return 0; }
std::size_t shared_bytes_of(const TiledPlan& /*plan*/) { return 0; }

std::size_t shared_bytes_of(const BilinearPlan& /*plan*/, bool /*directions*/) { return 0; }
std::size_t shared_bytes_of(const GlobalTablePlan& /*plan*/, bool directions) {
  return staged_bytes(directions, kDrawThreads);
}
std::size_t shared_bytes_of(const SingleRowPlan& /*plan*/, bool directions) {
  return staged_bytes(directions, kDrawThreads);
}
template <class Plan>
std::size_t shared_bytes_of(const Plan& plan, bool directions) {
  constexpr int kThreads = std::is_same_v<Plan, ReadyRowsPlan> ? kReadyRowsThreads : kDrawThreads;
  return plan.shared_bytes + staged_bytes(directions, kThreads);
}

TEST(SamplingTableMethod, FitsTheDeviceWhateverTheTable) {
  for_many_jobs([](const SamplingTableParams& params, const DeviceNumbers& device) {
    const auto shared = [](const auto& plan) { return shared_bytes_of(plan); };
    const BuildPlan build = choose(params, device);
    ASSERT_LE(std::visit(shared, build.rows), device.block_shared_bytes);
    ASSERT_LE(std::visit(shared, build.marginals), device.block_shared_bytes);
    const sampling::TableHeader header = sampling_table_header(params);
    for (const bool directions : {false, true}) {
      const DrawPlan draw = choose(DrawJob{header, kMany, directions}, device);
      const std::size_t bytes =
          std::visit([=](const auto& plan) { return shared_bytes_of(plan, directions); }, draw);
      ASSERT_LE(bytes, device.block_shared_bytes);
    }
  });
}

/// What the passes of a plan take.
std::size_t scratch_bytes_of(const BuildPlan& plan, const SamplingTableParams& params) {
  const sampling::TableHeader header = sampling_table_header(params);
  ScratchSize size;
  size.add<BuildFindings>(1).add<RowMass>(std::size_t{header.layers} * header.height);
  if (const auto* tiled = std::get_if<TiledPlan>(&plan.rows)) size.add<TileAggregate>(tiled->aggregates);
  if (plan.reduces) {
    size.add<RowReduction>(static_cast<std::size_t>(params.layers * params.height));
    size.add<WeightAdjustment>(static_cast<std::size_t>(params.layers));
  }
  return size.bytes();
}

TEST(SamplingTableMethod, TakesTheScratchThatAdmissionReserves) {
  const auto check = [](const SamplingTableParams& params, const DeviceNumbers& device) {
    const BuildPlan plan = choose(params, device);
    ASSERT_EQ(plan.scratch_bytes, scratch_bytes_of(plan, params));
    ASSERT_EQ(plan.scratch_bytes, sampling_table_scratch_bytes<Space::kDevice>(params));
  };
  for_many_jobs(check);
  check({.layers = 3, .height = 1, .width = 1 << 22, .mis_compensation = true}, kSmall);
  check({.layers = 2, .height = 700, .width = 900, .uniform_if_all_zero = true}, kH200);
}

}  // namespace
}  // namespace cumulus::sampling_table
