// What the precision of a summed-area table does to box means: the largest error of the mean over 16 x 16
// pixels, for each kind of float table, on noise and on images. Prints a Markdown table.
//
//   cumulus_summed_area_table_errors [--noise SIDE ...] [IMAGE.npy ...]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "cli/files/npy.h"
#include "kernels/core/cpu_executor.h"
#include "kernels/summed_area_table/queries.h"

namespace cumulus::bench {
namespace {

constexpr std::int32_t kBox = 16;
constexpr std::size_t kBoxes = 200'000;

using Image = HostImage<const float>;

std::vector<Rectangle> random_boxes(const Image& image) {
  std::mt19937 random(5);
  std::vector<Rectangle> boxes(kBoxes);
  for (Rectangle& box : boxes) {
    const auto place = [&random](std::int64_t extent) {
      return static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(extent - kBox + 1));
    };
    box.top = place(image.height);
    box.left = place(image.width);
    box.bottom = box.top + kBox;
    box.right = box.left + kBox;
  }
  return boxes;
}

double direct_mean(const Image& image, const Rectangle& box, std::int64_t channel) {
  double sum = 0;
  for (std::int64_t y = box.top; y < box.bottom; ++y) {
    for (std::int64_t x = box.left; x < box.right; ++x)
      sum += static_cast<double>(image.row(y)[x * image.channels + channel]);
  }
  return sum / (kBox * kBox);
}

double largest_error(const Image& image, const std::vector<Rectangle>& boxes,
                     const std::vector<double>& means) {
  double largest = 0;
  for (std::size_t i = 0; i < means.size(); ++i) {
    const auto channels = static_cast<std::size_t>(image.channels);
    const double right = direct_mean(image, boxes[i / channels], static_cast<std::int64_t>(i % channels));
    largest = std::max(largest, std::abs(means[i] - right));
  }
  return largest;
}

template <class Sum>
double error_of(CpuExecutor& executor, const Image& image, const std::vector<Rectangle>& boxes,
                const TableView<Sum, Space::kHost>& table) {
  std::vector<double> means(boxes.size() * static_cast<std::size_t>(image.channels));
  RectangleResults<Sum, Space::kHost> results;
  results.means = means.data();
  sum_rectangles(executor, table, HostSpan<const Rectangle>(boxes.data(), boxes.size()), results, nullptr);
  return largest_error(image, boxes, means);
}

TableShape shape_of(const Image& image) { return {image.height, image.width, image.channels, false}; }

template <class Sum>
double error_of_table(CpuExecutor& executor, const Image& image, const std::vector<Rectangle>& boxes,
                      bool centered = false) {
  std::vector<Sum> sums(static_cast<std::size_t>(image.elements()));
  TableJob<float, Sum, Space::kHost> job;
  job.image = image;
  job.sums = {sums.data(), image.height, image.width, image.channels};
  std::array<float, 4> offsets{};
  if constexpr (std::is_same_v<Sum, float>) {
    if (centered) {
      executor.reserve_scratch(average_image_scratch_bytes(job));
      average_image(executor, job, {offsets.data(), static_cast<std::size_t>(image.channels)});
      job.offsets = offsets.data();
    }
  }
  build_summed_area_table(executor, job);
  return error_of<Sum>(executor, image, boxes, {shape_of(image), sums.data(), nullptr, job.offsets});
}

double error_of_local_table(CpuExecutor& executor, const Image& image, const std::vector<Rectangle>& boxes) {
  std::vector<float> local(static_cast<std::size_t>(image.elements()));
  std::vector<double> above(
      static_cast<std::size_t>(local_above_elements(image.height, image.width, image.channels)));
  std::vector<double> left(
      static_cast<std::size_t>(local_left_elements(image.height, image.width, image.channels)));
  const LocalTableJob<float, Space::kHost> job{
      image, {local.data(), image.height, image.width, image.channels}, above.data(), left.data()};
  executor.reserve_scratch(build_local_summed_area_table_scratch_bytes(job, executor.numbers()));
  build_local_summed_area_table(executor, job);
  return error_of<float>(executor, image, boxes,
                         {shape_of(image), local.data(), nullptr, nullptr, above.data(), left.data()});
}

void measure(CpuExecutor& executor, const std::string& name, const Image& image) {
  const std::vector<Rectangle> boxes = random_boxes(image);
  float brightest = 0;
  double sum = 0;
  for (std::int64_t i = 0; i < image.elements(); ++i) {
    brightest = std::max(brightest, image.data[i]);
    sum += static_cast<double>(image.data[i]);
  }
  std::printf("| %s | %.3g | %.3g | %.1e | %.1e | %.1e | %.1e |\n", name.c_str(),
              sum / static_cast<double>(image.elements()), static_cast<double>(brightest),
              error_of_table<float>(executor, image, boxes),
              error_of_table<float>(executor, image, boxes, true),
              error_of_local_table(executor, image, boxes), error_of_table<double>(executor, image, boxes));
}

int run(const std::vector<std::int64_t>& noise, const std::vector<std::string>& files) {
  CpuExecutor executor;
  std::printf(
      "| image | mean | largest pixel | FLOAT32 | MEAN_SUBTRACTED | TILE_LOCAL | FLOAT64 |\n"
      "|---|---|---|---|---|---|---|\n");
  for (const std::int64_t side : noise) {
    std::vector<float> pixels(static_cast<std::size_t>(side * side));
    std::mt19937 random(1);
    for (float& pixel : pixels) pixel = static_cast<float>(random() >> 8) * 0x1p-24F;
    measure(executor, "noise, " + std::to_string(side) + " x " + std::to_string(side),
            {pixels.data(), side, side});
  }
  for (const std::string& file : files) {
    const absl::StatusOr<Array> array = cli::read_npy(file);
    if (!array.ok() || array->type() != ElementType::kFloat32 || array->shape().size() != 3) {
      std::fprintf(stderr, "%s is no float32 [height, width, channels] .npy file\n", file.c_str());
      return 1;
    }
    measure(executor, std::filesystem::path(file).stem().string(),
            {array->values<float>()->data(), array->shape()[0], array->shape()[1], array->shape()[2]});
  }
  return 0;
}

}  // namespace
}  // namespace cumulus::bench

int main(int argc, char** argv) {
  CLI::App app("Largest errors of 16 x 16 box means from summed-area tables of each precision");
  std::vector<std::int64_t> noise;
  std::vector<std::string> files;
  app.add_option("--noise", noise, "Sides of square images of noise in [0, 1)")
      ->check(CLI::Range(16, 32768))
      ->allow_extra_args(false);
  app.add_option("images", files, "float32 .npy files, [height, width, channels]");
  CLI11_PARSE(app, argc, argv);
  return cumulus::bench::run(noise, files);
}
