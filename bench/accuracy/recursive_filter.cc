#include "kernels/recursive_filter/recursive_filter.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/harness/bench.h"
#include "tests/cases/recursive_filter_case.h"

// The tables of docs/operations/recursive_filter.md: how far results are from a serial filter in long double.

namespace cumulus::bench {
namespace {

using testing::FilterImage;
using testing::FilterPattern;
using testing::FilterShape;
using testing::kFilterBoundaries;
using testing::make_filter_image;

/// An axis with the boundary that it is given.
struct Kernel {
  const char* name;
  int order;
  AxisFilter axis;

  RecursiveFilter on_both_axes(FilterBoundary boundary) const {
    RecursiveFilter filter{axis, axis};
    filter.y.boundary = filter.x.boundary = boundary;
    return filter;
  }
};

/// Those whose names contain `part`.
std::vector<Kernel> kernels(const std::string& part) {
  constexpr FilterBoundary kAny = FilterBoundary::kZero;
  const std::vector<double> five = {-1.2, 0.53, -0.12, 0.03, -0.004};
  std::vector<Kernel> all = {
      {"exponential, decay 0.9", 1, exponential_filter(0.9, kAny)},
      {"cubic prefilter", 1, bspline_prefilter(3, kAny)},
      {"quintic prefilter", 2, bspline_prefilter(5, kAny)},
      {"young, sigma 2", 3, gaussian_filter(2, kAny)},
      {"young, sigma 8", 3, gaussian_filter(8, kAny)},
      {"young, sigma 32", 3, gaussian_filter(32, kAny)},
      {"young, sigma 500", 3, gaussian_filter(500, kAny)},
      {"deriche, sigma 2", 4, deriche_filter(2, 0, kAny)},
      {"deriche, sigma 8", 4, deriche_filter(8, 0, kAny)},
      {"deriche, sigma 32", 4, deriche_filter(32, 0, kAny)},
      {"deriche, sigma 500", 4, deriche_filter(500, 0, kAny)},
      {"deriche, sigma 8, d/dx d/dy", 4, deriche_filter(8, 1, kAny)},
      {"feedback, five poles", 5, feedback_filter(std::nullopt, five, five, kAny)},
  };
  std::erase_if(
      all, [&](const Kernel& kernel) { return std::string(kernel.name).find(part) == std::string::npos; });
  return all;
}

template <class Executor>
double error_of(Executor& executor, FilterShape shape, const RecursiveFilter& filter) {
  constexpr Space kSpace = Executor::kSpace;
  const FilterImage image = make_filter_image(shape, FilterPattern::kRandom);
  const Array<float, Executor> pixels(executor, image.elements);
  const Array<float, Executor> filtered(executor, image.elements.size());
  const ImageView<const float, kSpace> source(pixels.data(), shape.height, shape.width);
  executor.reserve_scratch(
      apply_recursive_filter_scratch_bytes<float, kSpace>(source, filter, executor.numbers()));
  apply_recursive_filter<float>(executor, source, filter,
                                ImageView<float, kSpace>(filtered.data(), shape.height, shape.width));
  return largest_filter_error(image, filter_serially(image, filter), filtered.to_host().data());
}

template <class Executor>
void by_boundary(Executor& executor, FilterShape shape, const std::vector<Kernel>& kernels) {
  std::printf("| kernel | order |");
  for (const FilterBoundary boundary : kFilterBoundaries) std::printf(" %s |", testing::name_of(boundary));
  std::printf("\n|---|---|---|---|---|---|---|\n");
  for (const Kernel& kernel : kernels) {
    std::printf("| %s | %d |", kernel.name, kernel.order);
    for (const FilterBoundary boundary : kFilterBoundaries) {
      std::printf(" %.1e |", error_of(executor, shape, kernel.on_both_axes(boundary)));
      std::fflush(stdout);
    }
    std::printf("\n");
  }
}

template <class Executor>
void by_size(Executor& executor, const std::vector<std::int64_t>& sides, const std::vector<Kernel>& kernels) {
  std::printf("| kernel |");
  for (const std::int64_t side : sides) std::printf(" %lld |", static_cast<long long>(side));
  std::printf("\n|---|");
  for (std::size_t i = 0; i < sides.size(); ++i) std::printf("---|");
  std::printf("\n");
  for (const Kernel& kernel : kernels) {
    std::printf("| %s |", kernel.name);
    for (const std::int64_t side : sides) {
      std::printf(" %.1e |", error_of(executor, {side, side}, kernel.on_both_axes(FilterBoundary::kReflect)));
      std::fflush(stdout);
    }
    std::printf("\n");
  }
}

template <class Executor>
void print_tables(Executor& executor, const std::vector<Kernel>& kernels) {
  by_boundary(executor, {200, 1000}, kernels);
  std::printf("\n");
  by_size(executor, {16, 64, 256, 1024, 2048}, kernels);
}

}  // namespace
}  // namespace cumulus::bench

int main(int argc, char** argv) {
  CLI::App app(
      "Largest errors of recursive filters, of the image's largest magnitude, against a serial filter in "
      "long "
      "double: by kernel and boundary on 1000 x 200 pixels of noise, and by size of a square, reflected");
  std::string backend = "cpu";
  app.add_option("--backend", backend, "cpu or cuda")->check(CLI::IsMember({"cpu", "cuda"}));
  std::string part;
  app.add_option("--kernel", part, "only the kernels whose names contain this");
  CLI11_PARSE(app, argc, argv);
  const auto kernels = cumulus::bench::kernels(part);
  if (backend == "cpu") {
    cumulus::CpuExecutor executor;
    cumulus::bench::print_tables(executor, kernels);
  } else {
    cumulus::CudaDevice device(0);
    cumulus::CudaExecutor executor(device);
    cumulus::bench::print_tables(executor, kernels);
  }
}
