#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "kernels/recursive_filter/fir/blur.h"
#include "kernels/recursive_filter/method.h"
#include "tests/support/gpus.h"

// The kernels of the default Gaussian's stages, for images from one pixel to 16384 x 8192, on GPUs that need
// not be there.

namespace cumulus {
namespace {

using recursive_filter::choose;
using recursive_filter::DirectPlan;
using recursive_filter::FilterElement;
using recursive_filter::FirPlan;
using recursive_filter::FirStagePlan;
using recursive_filter::ImagesShape;
using recursive_filter::InterpolationPlan;
using recursive_filter::LargeStepPlan;
using recursive_filter::OneAxisPlan;
using recursive_filter::RingPlan;
using recursive_filter::SamplingPlan;
using testing::kH200;
using testing::kRtx4090;
using testing::kSmallTuring;

constexpr auto kFloat = FilterElement::kFloat;
constexpr auto kHalf = FilterElement::kFloat16;
constexpr auto kDouble = FilterElement::kDouble;
constexpr auto kClamp = FilterBoundary::kClamp;
constexpr auto kRepeat = FilterBoundary::kRepeat;

struct Described {
  std::string operator()(const DirectPlan& plan) const {
    return "direct " + std::to_string(plan.tile.numbers) + " x " + std::to_string(plan.tile.block_rows);
  }
  std::string operator()(const RingPlan& plan) const {
    return "ring " + std::to_string(plan.tile.column_groups) + " x " +
           std::to_string(plan.tile.steps * plan.tile.step_groups);
  }
  std::string operator()(const OneAxisPlan& /*plan*/) const { return "one axis"; }
  std::string operator()(const SamplingPlan& plan) const {
    return "sample " + std::to_string(plan.tile.steps) + " x " + std::to_string(plan.tile.runs) + " x " +
           std::to_string(plan.tile.line_runs);
  }
  std::string operator()(const InterpolationPlan& plan) const {
    return "interpolate " + std::to_string(plan.tile.runs) + " x " + std::to_string(plan.tile.line_runs);
  }
  std::string operator()(const LargeStepPlan& /*plan*/) const { return "large step"; }
};

/// The kernel of each stage and what its block has, along x and y: numbers or groups, and rows or groups; of
/// a sampling steps, runs and runs of rows.
std::string text_of(const FirPlan& plan) {
  if (std::holds_alternative<LargeStepPlan>(plan.kernels.front())) {
    return std::to_string(plan.kernels.size()) + " large steps";
  }
  std::string text;
  for (const FirStagePlan& kernel : plan.kernels) {
    text += (text.empty() ? "" : ", ") + std::visit(Described{}, kernel);
  }
  return text;
}

struct Row {
  std::int64_t height, width, channels, images;
  FilterElement element;
  double sigma;  // 0: along x alone, of a sigma of 8
  FilterBoundary along_x;
  std::string on_h200, on_rtx4090, on_small;

  FirBlur blur() const {
    if (sigma == 0) return {{}, FirAxis{8, along_x}};
    return {FirAxis{sigma, kClamp}, FirAxis{sigma, along_x}};
  }
  ImagesShape shape() const {
    const std::int64_t row = width * channels;
    return {height, width, channels, images, row, element, channels == 1 && width % 4 == 0};
  }
  FirPlan plan(const DeviceNumbers& device) const { return choose(blur(), shape(), device); }
  std::string name() const {
    return std::to_string(images) + " x " + std::to_string(height) + " x " + std::to_string(width) + " x " +
           std::to_string(channels) + ", sigma " + std::to_string(sigma);
  }
};

const std::vector<Row>& rows() {
  // clang-format off
  // height, width, channels, images, element, sigma, boundary along x, on an H200, on an RTX 4090, on a small GPU
  static const std::vector<Row> rows = {
    {1, 1, 1, 1, kFloat, 2, kClamp, "direct 96 x 16", "direct 96 x 16", "direct 96 x 16"},
    {1, 4096, 1, 1, kFloat, 2, kClamp, "direct 96 x 16", "direct 96 x 16", "direct 96 x 16"},
    {4096, 1, 1, 1, kFloat, 2, kClamp, "direct 96 x 16", "direct 96 x 16", "direct 96 x 112"},
    {64, 64, 1, 1, kFloat, 2, kClamp, "direct 96 x 16", "direct 96 x 16", "direct 96 x 16"},
    {512, 512, 1, 1, kFloat, 2, kClamp, "direct 192 x 16", "direct 192 x 16", "direct 192 x 96"},
    {1080, 1920, 1, 1, kFloat, 2, kClamp, "direct 192 x 48", "direct 96 x 64", "direct 192 x 272"},
    {1024, 2048, 1, 1, kFloat, 2, kClamp, "direct 192 x 48", "direct 96 x 64", "direct 192 x 208"},
    {2048, 2048, 1, 1, kFloat, 2, kClamp, "direct 192 x 64", "direct 96 x 128", "direct 192 x 304"},
    {4096, 8192, 1, 1, kFloat, 2, kClamp, "direct 192 x 352", "direct 96 x 320", "direct 192 x 512"},
    {8192, 16384, 1, 1, kFloat, 2, kClamp, "direct 192 x 464", "direct 96 x 416", "direct 192 x 512"},
    {1, 1, 1, 1, kFloat, 8, kClamp, "sample 1 x 8 x 1, one axis, one axis, interpolate 1 x 2", "sample 1 x 8 x 1, one axis, one axis, interpolate 1 x 2", "sample 1 x 8 x 1, one axis, one axis, interpolate 1 x 2"},
    {1, 4096, 1, 1, kFloat, 8, kClamp, "sample 1 x 8 x 1, one axis, one axis, interpolate 2 x 2", "sample 1 x 8 x 1, one axis, one axis, interpolate 2 x 2", "sample 1 x 11 x 1, one axis, one axis, interpolate 9 x 2"},
    {4096, 1, 1, 1, kFloat, 8, kClamp, "sample 1 x 8 x 1, one axis, one axis, interpolate 1 x 3", "sample 1 x 8 x 1, one axis, one axis, interpolate 1 x 3", "sample 1 x 2 x 1, one axis, one axis, interpolate 1 x 5"},
    {64, 64, 1, 1, kFloat, 8, kClamp, "sample 1 x 8 x 1, one axis, one axis, interpolate 1 x 2", "sample 1 x 8 x 1, one axis, one axis, interpolate 1 x 2", "sample 1 x 8 x 1, one axis, one axis, interpolate 1 x 2"},
    {512, 512, 1, 1, kFloat, 8, kClamp, "sample 1 x 8 x 1, one axis, one axis, interpolate 1 x 4", "sample 1 x 8 x 1, one axis, one axis, interpolate 1 x 4", "sample 1 x 8 x 1, one axis, one axis, interpolate 2 x 5"},
    {1080, 1920, 1, 1, kFloat, 8, kClamp, "sample 1 x 8 x 1, one axis, one axis, interpolate 1 x 5", "sample 1 x 4 x 2, one axis, one axis, interpolate 2 x 5", "sample 7 x 4 x 2, one axis, one axis, interpolate 4 x 5"},
    {1024, 2048, 1, 1, kFloat, 8, kClamp, "sample 1 x 8 x 1, one axis, one axis, interpolate 1 x 5", "sample 1 x 8 x 1, one axis, one axis, interpolate 3 x 7", "sample 6 x 5 x 1, one axis, one axis, interpolate 2 x 8"},
    {2048, 2048, 1, 1, kFloat, 8, kClamp, "sample 1 x 8 x 1, one axis, one axis, interpolate 1 x 5", "sample 1 x 8 x 1, one axis, one axis, interpolate 2 x 5", "sample 1 x 13 x 1, one axis, one axis, interpolate 4 x 8"},
    {4096, 8192, 1, 1, kFloat, 8, kClamp, "sample 6 x 4 x 2, one axis, one axis, interpolate 2 x 8", "sample 7 x 13 x 1, one axis, one axis, interpolate 4 x 8", "sample 9 x 13 x 1, one axis, one axis, interpolate 4 x 8"},
    {8192, 16384, 1, 1, kFloat, 8, kClamp, "sample 23 x 2 x 4, one axis, one axis, interpolate 2 x 8", "sample 5 x 13 x 1, one axis, one axis, interpolate 4 x 8", "sample 18 x 13 x 1, one axis, one axis, interpolate 4 x 8"},
    {256, 512, 3, 1, kFloat, 2, kRepeat, "direct 192 x 16", "direct 192 x 16", "direct 192 x 128"},
    {512, 1024, 3, 1, kFloat, 2, kRepeat, "direct 192 x 32", "direct 192 x 64", "direct 192 x 512"},
    {1024, 2048, 3, 1, kFloat, 2, kRepeat, "direct 192 x 64", "direct 96 x 176", "direct 192 x 208"},
    {2048, 4096, 3, 1, kFloat, 2, kRepeat, "direct 192 x 256", "direct 96 x 352", "direct 192 x 512"},
    {4096, 8192, 3, 1, kFloat, 2, kRepeat, "direct 192 x 512", "direct 96 x 464", "direct 192 x 512"},
    {8192, 16384, 3, 1, kFloat, 2, kRepeat, "direct 192 x 512", "direct 96 x 512", "direct 192 x 512"},
    {256, 512, 3, 1, kFloat, 8, kRepeat, "sample 1 x 4 x 1, one axis, one axis, interpolate 1 x 4", "sample 1 x 4 x 1, one axis, one axis, interpolate 1 x 5", "sample 2 x 3 x 1, one axis, one axis, interpolate 1 x 5"},
    {512, 1024, 3, 1, kFloat, 8, kRepeat, "sample 1 x 5 x 1, one axis, one axis, interpolate 1 x 5", "sample 1 x 5 x 1, one axis, one axis, interpolate 2 x 4", "sample 6 x 3 x 1, one axis, one axis, interpolate 2 x 5"},
    {1024, 2048, 3, 1, kFloat, 8, kRepeat, "sample 2 x 5 x 1, one axis, one axis, interpolate 1 x 5", "sample 2 x 5 x 1, one axis, one axis, interpolate 1 x 7", "sample 7 x 3 x 1, one axis, one axis, interpolate 2 x 5"},
    {2048, 4096, 3, 1, kFloat, 8, kRepeat, "sample 5 x 4 x 1, one axis, one axis, interpolate 1 x 7", "sample 6 x 6 x 1, one axis, one axis, interpolate 2 x 7", "sample 6 x 3 x 1, one axis, one axis, interpolate 2 x 5"},
    {4096, 8192, 3, 1, kFloat, 8, kRepeat, "sample 20 x 2 x 2, one axis, one axis, interpolate 1 x 7", "sample 5 x 5 x 1, one axis, one axis, interpolate 2 x 7", "sample 29 x 3 x 1, one axis, one axis, interpolate 2 x 5"},
    {8192, 16384, 3, 1, kFloat, 8, kRepeat, "sample 15 x 2 x 2, one axis, one axis, interpolate 1 x 7", "sample 9 x 6 x 1, one axis, one axis, interpolate 2 x 7", "sample 23 x 3 x 1, one axis, one axis, interpolate 2 x 5"},
    {1080, 1920, 2, 1, kFloat, 2, kClamp, "direct 96 x 48", "direct 96 x 128", "direct 192 x 368"},
    {1080, 1920, 3, 1, kFloat, 2, kClamp, "direct 192 x 64", "direct 96 x 192", "direct 192 x 272"},
    {1080, 1920, 4, 1, kFloat, 2, kClamp, "direct 192 x 128", "direct 192 x 368", "direct 192 x 368"},
    {1080, 1920, 2, 1, kFloat, 8, kClamp, "sample 1 x 8 x 1, one axis, one axis, interpolate 1 x 5", "sample 1 x 4 x 1, one axis, one axis, interpolate 1 x 5", "sample 3 x 6 x 1, one axis, one axis, interpolate 2 x 5"},
    {1080, 1920, 3, 1, kFloat, 8, kClamp, "sample 2 x 4 x 1, one axis, one axis, interpolate 1 x 7", "sample 2 x 2 x 2, one axis, one axis, interpolate 2 x 5", "sample 6 x 3 x 1, one axis, one axis, interpolate 2 x 5"},
    {1080, 1920, 4, 1, kFloat, 8, kClamp, "sample 2 x 4 x 1, one axis, one axis, interpolate 1 x 5", "sample 3 x 2 x 1, one axis, one axis, interpolate 1 x 5", "sample 9 x 2 x 1, one axis, one axis, interpolate 1 x 7"},
    {2048, 2048, 1, 1, kHalf, 2, kClamp, "direct 192 x 64", "direct 192 x 96", "direct 192 x 304"},
    {2048, 2048, 3, 1, kHalf, 2, kClamp, "direct 192 x 128", "direct 192 x 256", "direct 192 x 416"},
    {2048, 2048, 4, 1, kHalf, 2, kClamp, "direct 192 x 176", "direct 192 x 192", "direct 192 x 512"},
    {2048, 2048, 1, 1, kHalf, 8, kClamp, "sample 1 x 8 x 1, one axis, one axis, interpolate 1 x 5", "sample 1 x 8 x 1, one axis, one axis, interpolate 2 x 5", "sample 1 x 13 x 1, one axis, one axis, interpolate 4 x 8"},
    {2048, 2048, 3, 1, kHalf, 8, kClamp, "sample 3 x 5 x 1, one axis, one axis, interpolate 1 x 7", "sample 3 x 6 x 1, one axis, one axis, interpolate 2 x 5", "sample 6 x 3 x 1, one axis, one axis, interpolate 2 x 5"},
    {2048, 2048, 4, 1, kHalf, 8, kClamp, "sample 3 x 2 x 1, one axis, one axis, interpolate 1 x 8", "sample 2 x 4 x 1, one axis, one axis, interpolate 1 x 8", "sample 11 x 2 x 1, one axis, one axis, interpolate 1 x 7"},
    {1080, 1920, 3, 1, kHalf, 2, kClamp, "direct 192 x 64", "direct 192 x 144", "direct 192 x 272"},
    {1080, 1920, 3, 1, kHalf, 8, kClamp, "sample 2 x 4 x 1, one axis, one axis, interpolate 1 x 7", "sample 2 x 2 x 2, one axis, one axis, interpolate 2 x 5", "sample 6 x 3 x 1, one axis, one axis, interpolate 2 x 5"},
    {1080, 1920, 1, 1, kDouble, 2, kClamp, "ring 72 x 128", "ring 72 x 128", "ring 24 x 1088"},
    {2048, 4096, 3, 1, kDouble, 2, kClamp, "ring 48 x 704", "ring 24 x 416", "ring 8 x 512"},
    {1080, 1920, 1, 1, kDouble, 8, kClamp, "ring 72 x 48, ring 72 x 32, ring 144 x 32, ring 72 x 32, ring 48 x 32, ring 144 x 32", "ring 72 x 96, ring 72 x 32, ring 72 x 32, ring 72 x 32, ring 24 x 64, ring 72 x 96", "ring 8 x 376, ring 24 x 192, ring 72 x 192, ring 40 x 384, ring 24 x 192, ring 72 x 192"},
    {2048, 4096, 3, 1, kDouble, 8, kClamp, "ring 24 x 240, ring 24 x 64, ring 48 x 32, ring 24 x 192, ring 16 x 256, ring 48 x 256", "ring 24 x 144, ring 16 x 32, ring 24 x 64, ring 24 x 352, ring 16 x 32, ring 24 x 352", "ring 8 x 232, ring 8 x 232, ring 8 x 176, ring 8 x 704, ring 8 x 704, ring 24 x 704"},
    {256, 256, 3, 16, kFloat, 2, kClamp, "direct 192 x 64", "direct 192 x 128", "direct 192 x 128"},
    {512, 512, 1, 100, kFloat, 2, kClamp, "direct 192 x 176", "direct 96 x 512", "direct 192 x 512"},
    {256, 256, 4, 8, kHalf, 2, kClamp, "direct 96 x 48", "direct 96 x 64", "direct 192 x 128"},
    {256, 256, 3, 16, kFloat, 8, kClamp, "sample 1 x 7 x 1, one axis, one axis, interpolate 1 x 8", "sample 2 x 4 x 1, one axis, one axis, interpolate 1 x 5", "sample 5 x 3 x 1, one axis, one axis, interpolate 1 x 5"},
    {512, 512, 1, 100, kFloat, 8, kClamp, "sample 6 x 4 x 2, one axis, one axis, interpolate 1 x 5", "sample 3 x 8 x 1, one axis, one axis, interpolate 2 x 8", "sample 2 x 12 x 1, one axis, one axis, interpolate 2 x 5"},
    {256, 256, 4, 8, kHalf, 8, kClamp, "sample 1 x 2 x 1, one axis, one axis, interpolate 1 x 8", "sample 1 x 4 x 1, one axis, one axis, interpolate 3 x 3", "sample 7 x 2 x 1, one axis, one axis, interpolate 1 x 4"},
    {1024, 2048, 3, 1, kFloat, 0.5, kClamp, "direct 192 x 68", "direct 192 x 132", "direct 96 x 148"},
    {1024, 2048, 3, 1, kFloat, 3.9, kClamp, "direct 192 x 128", "direct 192 x 256", "direct 96 x 256"},
    {1024, 2048, 3, 1, kFloat, 4, kClamp, "sample 2 x 6 x 1, one axis, one axis, interpolate 2 x 8", "sample 3 x 4 x 1, one axis, one axis, interpolate 2 x 8", "sample 5 x 4 x 1, one axis, one axis, interpolate 3 x 7"},
    {1024, 2048, 3, 1, kFloat, 5.25, kClamp, "sample 2 x 6 x 1, one axis, one axis, interpolate 2 x 8", "sample 3 x 4 x 1, one axis, one axis, interpolate 2 x 8", "sample 11 x 4 x 1, one axis, one axis, interpolate 2 x 7"},
    {1024, 2048, 3, 1, kFloat, 16, kClamp, "sample 1 x 3 x 1, one axis, one axis, interpolate 1 x 8", "sample 1 x 5 x 1, one axis, one axis, interpolate 1 x 8", "sample 5 x 2 x 1, one axis, one axis, interpolate 1 x 8"},
    {1024, 2048, 3, 1, kFloat, 32, kClamp, "sample 1 x 3 x 1, sample 1 x 4 x 1, one axis, one axis, interpolate 1 x 4, interpolate 1 x 8", "sample 1 x 5 x 1, sample 1 x 4 x 1, one axis, one axis, interpolate 1 x 5, interpolate 1 x 8", "sample 5 x 2 x 1, sample 2 x 6 x 1, one axis, one axis, interpolate 1 x 5, interpolate 1 x 8"},
    {1024, 2048, 3, 1, kFloat, 100, kClamp, "sample 1 x 3 x 1, sample 1 x 2 x 1, sample 1 x 4 x 1, one axis, one axis, interpolate 1 x 2, interpolate 2 x 2, interpolate 1 x 8", "sample 1 x 5 x 1, sample 1 x 2 x 1, sample 1 x 4 x 1, one axis, one axis, interpolate 1 x 2, interpolate 2 x 2, interpolate 1 x 8", "sample 5 x 2 x 1, sample 1 x 5 x 1, sample 1 x 4 x 1, one axis, one axis, interpolate 1 x 5, interpolate 1 x 6, interpolate 1 x 8"},
    {1024, 2048, 3, 1, kFloat, 1000, kClamp, "sample 1 x 3 x 1, sample 1 x 2 x 1, sample 1 x 2 x 1, sample 1 x 2 x 1, one axis, one axis, interpolate 1 x 2, interpolate 1 x 2, interpolate 1 x 3, interpolate 1 x 8", "sample 1 x 3 x 1, sample 1 x 2 x 1, sample 1 x 2 x 1, sample 1 x 2 x 1, one axis, one axis, interpolate 1 x 2, interpolate 1 x 2, interpolate 1 x 3, interpolate 1 x 8", "sample 11 x 3 x 1, sample 1 x 3 x 1, sample 1 x 2 x 1, sample 1 x 2 x 1, one axis, one axis, interpolate 1 x 2, interpolate 1 x 2, interpolate 3 x 3, interpolate 2 x 4"},
    {2048, 4096, 1, 1, kFloat, 32, kClamp, "sample 2 x 6 x 1, sample 1 x 8 x 1, one axis, one axis, interpolate 1 x 5, interpolate 4 x 8", "sample 2 x 6 x 1, sample 1 x 8 x 1, one axis, one axis, interpolate 4 x 4, interpolate 4 x 8", "sample 5 x 4 x 2, sample 2 x 8 x 1, one axis, one axis, interpolate 2 x 5, interpolate 4 x 8"},
    {4096, 8192, 3, 1, kFloat, 1000, kClamp, "sample 13 x 2 x 1, sample 1 x 3 x 1, sample 1 x 2 x 1, sample 1 x 2 x 1, one axis, one axis, interpolate 1 x 2, interpolate 2 x 2, interpolate 3 x 3, interpolate 1 x 8", "sample 9 x 2 x 1, sample 1 x 3 x 1, sample 1 x 2 x 1, sample 1 x 2 x 1, one axis, one axis, interpolate 1 x 2, interpolate 2 x 2, interpolate 3 x 3, interpolate 1 x 8", "sample 29 x 3 x 1, sample 11 x 3 x 1, sample 1 x 5 x 1, sample 1 x 2 x 1, one axis, one axis, interpolate 1 x 2, interpolate 1 x 6, interpolate 2 x 5, interpolate 2 x 4"},
    {1080, 1920, 3, 1, kFloat, 0, kClamp, "sample 4 x 2 x 2, one axis, interpolate 1 x 7", "sample 6 x 2 x 2, one axis, interpolate 2 x 5", "sample 7 x 3 x 1, one axis, interpolate 2 x 5"},
    {2048, 4096, 1, 1, kFloat, 0, kRepeat, "sample 5 x 12 x 1, one axis, interpolate 2 x 8", "sample 5 x 12 x 1, one axis, interpolate 4 x 8", "sample 7 x 13 x 1, one axis, interpolate 4 x 8"},
    {1080, 1919, 3, 1, kFloat, 0, kClamp, "sample 4 x 2 x 2, one axis, interpolate 1 x 7", "sample 6 x 2 x 2, one axis, interpolate 2 x 5", "sample 7 x 3 x 1, one axis, interpolate 2 x 5"},
    {1080, 1919, 3, 1, kHalf, 0, kClamp, "sample 4 x 2 x 2, one axis, interpolate 1 x 7", "sample 6 x 2 x 2, one axis, interpolate 2 x 5", "sample 7 x 3 x 1, one axis, interpolate 2 x 5"},
    {1080, 1919, 3, 1, kFloat, 8, kClamp, "sample 2 x 4 x 1, one axis, one axis, interpolate 1 x 7", "sample 2 x 2 x 2, one axis, one axis, interpolate 2 x 5", "sample 6 x 3 x 1, one axis, one axis, interpolate 2 x 5"},
    {1, 1000000, 1, 1, kFloat, 0, kClamp, "sample 8 x 8 x 1, one axis, interpolate 8 x 2", "sample 11 x 8 x 1, one axis, interpolate 21 x 2", "sample 29 x 12 x 1, one axis, interpolate 8 x 2"},
    {2048, 4096, 1, 1, kFloat, 300, kRepeat, "10 large steps", "10 large steps", "10 large steps"},
    {1024, 2048, 3, 1, kFloat, 1000, kRepeat, "12 large steps", "12 large steps", "12 large steps"},
    {1080, 1920, 4, 1, kDouble, 3.9, kClamp, "ring 16 x 1088", "ring 8 x 360", "2 large steps"},
    {2048, 4096, 4, 1, kDouble, 1000, kClamp, "ring 16 x 528, ring 16 x 288, ring 16 x 48, ring 16 x 32, ring 16 x 16, ring 16 x 32, ring 16 x 16, ring 16 x 32, ring 32 x 32, ring 16 x 24, ring 8 x 24, ring 32 x 16, ring 8 x 32, ring 32 x 32, ring 8 x 32, ring 32 x 32, ring 8 x 288, ring 32 x 256", "ring 16 x 528, ring 8 x 32, ring 16 x 16, ring 8 x 64, ring 16 x 16, ring 8 x 8, ring 16 x 16, ring 8 x 8, ring 8 x 8, ring 16 x 24, ring 8 x 24, ring 16 x 16, ring 8 x 32, ring 16 x 32, ring 8 x 64, ring 16 x 32, ring 8 x 544, ring 16 x 512", "ring 8 x 104, ring 8 x 264, ring 8 x 72, ring 8 x 144, ring 8 x 48, ring 8 x 24, ring 8 x 16, ring 8 x 8, ring 8 x 8, ring 8 x 8, ring 8 x 8, ring 16 x 16, ring 8 x 32, ring 16 x 64, ring 8 x 48, ring 16 x 160, ring 8 x 272, ring 16 x 512"},
    {4096, 8192, 3, 1, kFloat, 4.5, kClamp, "ring 48 x 704, direct 192 x 260, ring 24 x 128", "ring 24 x 416, direct 96 x 260, ring 24 x 256", "ring 24 x 416, direct 192 x 260, ring 24 x 2048"},
  };
  // clang-format on
  return rows;
}

TEST(FirGaussianMethod, IsTheOneOfTheTable) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name());
    EXPECT_EQ(text_of(row.plan(kH200)), row.on_h200);
    EXPECT_EQ(text_of(row.plan(kRtx4090)), row.on_rtx4090);
    EXPECT_EQ(text_of(row.plan(kSmallTuring)), row.on_small);
  }
}

template <class T>
std::size_t reserved_bytes(const Row& row, const DeviceNumbers& device) {
  const ImageView<const T, Space::kDevice> image(nullptr, row.height, row.width, row.channels);
  return fir_gaussian_blur_scratch_bytes<T, Space::kDevice>({image, row.images}, row.blur(), device);
}

TEST(FirGaussianMethod, TakesTheScratchMemoryThatAdmissionReserves) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.name());
    for (const DeviceNumbers& device : {kH200, kRtx4090, kSmallTuring}) {
      const std::size_t reserved = row.element == kDouble ? reserved_bytes<double>(row, device)
                                   : row.element == kHalf ? reserved_bytes<Float16>(row, device)
                                                          : reserved_bytes<float>(row, device);
      const FirPlan plan = row.plan(device);
      EXPECT_EQ(plan.scratch_bytes, reserved);
      EXPECT_EQ(plan.scratch_bytes == 0, plan.stages.size() == 1);
    }
  }
}

/// A block has the memory.
struct ExpectFits {
  const DeviceNumbers& device;

  void operator()(const DirectPlan& plan) const {
    EXPECT_LE(plan.tile.shared_bytes, device.block_shared_bytes);
  }
  void operator()(const RingPlan& plan) const {
    EXPECT_LE(plan.tile.shared_bytes, device.block_shared_bytes);
  }
  void operator()(const OneAxisPlan& /*plan*/) const {}
  void operator()(const SamplingPlan& plan) const {
    EXPECT_LE(plan.tile.shared_bytes, device.block_shared_bytes);
    EXPECT_LE(plan.tile.threads, recursive_filter::kBothAxesThreads);
  }
  void operator()(const InterpolationPlan& plan) const {
    EXPECT_LE(plan.tile.shared_bytes, device.block_shared_bytes);
    EXPECT_LE(plan.tile.threads, recursive_filter::kBothAxesThreads);
  }
  void operator()(const LargeStepPlan& /*plan*/) const {}
};

TEST(FirGaussianMethod, FitsEachDeviceWhateverTheImage) {
  for (const DeviceNumbers& device : {kH200, kRtx4090, kSmallTuring}) {
    for (const double sigma : {0.3, 1.0, 3.9, 4.0, 8.0, 33.0, 1000.0}) {
      for (const std::int64_t height : {1, 63, 1080, 8192}) {
        for (const std::int64_t width : {1, 100, 1920, 16384}) {
          for (const std::int64_t channels : {1, 2, 3, 4}) {
            for (const FilterElement element : {kFloat, kHalf, kDouble}) {
              const Row row{height, width, channels, 2, element, sigma, kClamp, "", "", ""};
              SCOPED_TRACE(row.name());
              const FirPlan plan = row.plan(device);
              ASSERT_EQ(plan.kernels.size(), plan.stages.size());
              for (const FirStagePlan& kernel : plan.kernels) std::visit(ExpectFits{device}, kernel);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace cumulus
