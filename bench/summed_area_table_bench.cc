#include <string>
#include <type_traits>
#include <vector>

#include "bench/bench.h"
#include "kernels/summed_area_table/summed_area_table.h"
#include "tests/cases/summed_area_table_case.h"

namespace cumulus::bench {
namespace {

using testing::ImagePattern;
using testing::ImageShape;
using testing::make_image;
using testing::TestImage;

template <class T>
constexpr const char* kTypeName = nullptr;
template <>
constexpr const char* kTypeName<std::uint8_t> = "u8";
template <>
constexpr const char* kTypeName<std::uint32_t> = "u32";
template <>
constexpr const char* kTypeName<std::uint64_t> = "u64";
template <>
constexpr const char* kTypeName<float> = "f32";
template <>
constexpr const char* kTypeName<double> = "f64";

std::string size_name(ImageShape shape, std::int64_t channels) {
  const std::string extents = std::to_string(shape.height) + "x" + std::to_string(shape.width);
  return channels == 1 ? extents : extents + "x" + std::to_string(channels);
}

template <class Input, class Sum, class Executor>
void bench_table(Runner<Executor>& runner, ImageShape shape, std::int64_t channels) {
  const std::string name = std::string("summed_area_table/") + kTypeName<Input> + "-" + kTypeName<Sum> + "/" +
                           size_name(shape, channels);
  if (!runner.wants(name)) return;
  Executor& executor = runner.executor();
  const auto image = make_image<Input>(shape, channels, 0, ImagePattern::kRandom);
  const Array<Input, Executor> pixels(executor, image.elements);
  const Array<Sum, Executor> table(executor, image.elements.size());
  const ImageView<const Input, Executor::kSpace> view(pixels.data(), shape.height, shape.width, channels);
  const ImageView<Sum, Executor::kSpace> sums(table.data(), shape.height, shape.width, channels);
  const auto elements = static_cast<std::int64_t>(image.elements.size());
  runner.measure({
      .name = name,
      .bytes = testing::summed_area_table_bytes<Input, Sum>(elements),
      .items = static_cast<double>(shape.height * shape.width),
      .unit = "pixels",
      .scratch_bytes = build_summed_area_table_scratch_bytes(view, sums),
      .run = [&] { build_summed_area_table(executor, view, sums); },
      .verify = [&] { return verify_summed_area_table(image, table.to_host().data()); },
      .verified_by = "serial oracle, every element",
  });
}

template <class Input, class Executor>
void bench_box_filter(Runner<Executor>& runner, ImageShape shape, std::int64_t radius) {
  const std::string name = std::string("filter_box/") + kTypeName<Input> + "/radius-" +
                           std::to_string(radius) + "/" + size_name(shape, 1);
  if (!runner.wants(name)) return;
  Executor& executor = runner.executor();
  const auto image = make_image<Input>(shape, 1, 0, ImagePattern::kRandom);
  const Array<Input, Executor> pixels(executor, image.elements);
  const Array<float, Executor> means(executor, image.elements.size());
  const ImageView<const Input, Executor::kSpace> view(pixels.data(), shape.height, shape.width);
  const ImageView<float, Executor::kSpace> filtered(means.data(), shape.height, shape.width);
  runner.measure({
      .name = name,
      .bytes = image.elements.size() * (sizeof(Input) + sizeof(float)),
      .items = static_cast<double>(shape.height * shape.width),
      .unit = "pixels",
      .scratch_bytes = filter_box_scratch_bytes(view, radius, filtered),
      .run = [&] { filter_box(executor, view, radius, filtered); },
      .verify = [&] { return verify_box_filter(image, radius, means.to_host().data()); },
      .verified_by = "naive box, every element",
  });
}

template <class Executor>
void bench_all(Runner<Executor>& runner) {
  constexpr bool kGpu = std::is_same_v<Executor, CudaExecutor>;
  std::vector<std::int64_t> sides = {1024, 2048, 4096};
  if (kGpu) sides.insert(sides.end(), {8192, 16384});
  if (runner.quick()) sides = {512};
  for (const std::int64_t side : sides) {
    const ImageShape shape{side, side};
    bench_table<float, float>(runner, shape, 1);
    bench_table<float, double>(runner, shape, 1);
    bench_table<std::uint8_t, std::uint32_t>(runner, shape, 1);
    bench_table<std::uint8_t, std::uint64_t>(runner, shape, 1);
  }
  const std::int64_t side = sides[sides.size() / 2];
  for (const std::int64_t channels : {2, 3, 4}) {
    bench_table<float, float>(runner, {side, side}, channels);
    bench_table<float, double>(runner, {side, side}, channels);
    bench_table<std::uint8_t, std::uint32_t>(runner, {side, side}, channels);
  }
  bench_table<float, float>(runner, {side - 1, side - 3}, 1);
  bench_table<float, double>(runner, {side - 1, side - 3}, 1);
  for (const std::int64_t radius : {3, 31}) {
    bench_box_filter<float>(runner, {sides.front(), sides.front()}, radius);
    bench_box_filter<std::uint8_t>(runner, {sides.front(), sides.front()}, radius);
  }
}

}  // namespace

void bench_summed_area_table(Runner<CpuExecutor>& runner);
void bench_summed_area_table(Runner<CudaExecutor>& runner);

void bench_summed_area_table(Runner<CpuExecutor>& runner) { bench_all(runner); }
void bench_summed_area_table(Runner<CudaExecutor>& runner) { bench_all(runner); }

}  // namespace cumulus::bench
