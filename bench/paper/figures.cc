#include "bench/paper/figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iomanip>
#include <sstream>
#include <vector>

#include "bench/paper/distributions.h"
#include "bench/paper/drawn_table.h"
#include "bench/paper/picture.h"

namespace cumulus::bench {
namespace {

using sampling::FixedPoint2;
using sampling::Method;

/// Figure 1: the first coordinate chooses the column and the height in it, the second the place across.
void write_figure1(const std::string& path) {
  constexpr std::uint32_t kColumns = 24;
  constexpr std::uint32_t kPoints = 1024;
  constexpr double kPanel = 480;
  constexpr double kScale = 3600;
  Density density{1, kColumns, {}};
  for (std::uint32_t i = 0; i < kColumns; ++i) {
    const double x = (i + 0.5) / kColumns;
    density.weights.push_back(static_cast<float>(0.15 + std::exp(-40 * std::pow(x - 0.3, 2)) +
                                                 0.7 * std::exp(-150 * std::pow(x - 0.75, 2))));
  }
  Picture picture(path, 1000, 420);
  double left = 10;
  for (const Method method : kBothMethods) {
    const DrawnTable table(density, method);
    const std::vector<double> probability = table.probabilities();
    const double wide = kPanel / kColumns;
    for (std::uint32_t i = 0; i < kColumns; ++i) {
      const double tall = probability[i] * kScale;
      picture.box(left + i * wide + 0.5, 400 - tall, wide - 1, tall, "#e8eef6");
    }
    std::vector<std::array<double, 2>> dots;
    for (std::uint32_t i = 0; i < kPoints; ++i) {
      const FixedPoint2 point = sampling::hammersley_point(i, kPoints);
      const sampling::Sample drawn = table.sample(point);
      const double up = static_cast<double>(drawn.u) * kColumns - drawn.x;
      dots.push_back(
          {left + (drawn.x + std::ldexp(point.y, -32)) * wide, 400 - up * probability[drawn.x] * kScale});
    }
    picture.dots(dots, 2.5, "#12345a");
    picture.text(left, 20, title(method));
    left += kPanel + 20;
  }
  picture.save();
}

/// A sky: brighter towards the horizon, a sun with its halo, a darker ground.
Density sky(std::uint32_t height, std::uint32_t width) {
  Density density{height, width, {}};
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      const double u = (x + 0.5) / width;
      const double v = (y + 0.5) / height;
      const double from_sun = std::pow(2 * (u - 0.62), 2) + std::pow(v - 0.33, 2);
      const double air = v < 0.5 ? 0.2 + 0.6 * v : 0.08;
      density.weights.push_back(
          static_cast<float>(air + 12 * std::exp(-900 * from_sun) + 1.5 * std::exp(-25 * from_sun)));
    }
  }
  return density;
}

/// Figure 7: how often each of 64 cells is drawn, beside how often it should be, by points of the van der
/// Corput sequence. The paper does not say what its density is; this one has a broad hill and a narrow one.
void write_figure7(const std::string& path) {
  constexpr std::uint32_t kColumns = 64;
  constexpr double kPanel = 480;
  Density density{1, kColumns, {}};
  for (std::uint32_t i = 0; i < kColumns; ++i) {
    const double x = (i + 0.5) / kColumns;
    density.weights.push_back(static_cast<float>(0.05 + std::exp(-30 * std::pow(x - 0.35, 2)) +
                                                 1.5 * std::exp(-400 * std::pow(x - 0.8, 2))));
  }
  Picture picture(path, 1000, 640);
  std::printf("\nFigure 7: quadratic error on a line of 64 cells\n");
  double top = 10;
  for (const std::uint32_t points : {128u, 1024u}) {
    double left = 10;
    for (const Method method : kBothMethods) {
      const DrawnTable table(density, method);
      const std::vector<double> probability = table.probabilities();
      std::vector<std::uint32_t> count(kColumns);
      for (std::uint32_t i = 0; i < points; ++i) ++count[table.sample({sampling::sobol_point(i).x, 0}).x];
      const double wide = kPanel / kColumns;
      const double base = top + 290;
      std::vector<std::array<double, 2>> curve;
      double error = 0;
      for (std::uint32_t i = 0; i < kColumns; ++i) {
        const double share = static_cast<double>(count[i]) / points;
        error += std::pow(share - probability[i], 2);
        picture.box(left + i * wide, base - 4000 * share, wide - 1, 4000 * share, "#b9cbe4");
        curve.push_back({left + (i + 0.5) * wide, base - 4000 * probability[i]});
      }
      picture.line(curve, "#000", false);
      picture.text(left, top + 14, std::to_string(points) + " points, " + title(method));
      std::printf("  %5u points, %-24s %10.3g\n", points, title(method), error);
      left += kPanel + 20;
    }
    top += 315;
  }
  picture.save();
}

/// Figure 12: the distributions of Table 1, the logarithm of each weight.
void write_figure12(const std::string& path) {
  constexpr double kPanel = 480;
  Picture picture(path, 1000, 640);
  int panel = 0;
  for (const Distribution& distribution : distributions()) {
    const double left = 10 + panel % 2 * (kPanel + 20);
    const double base = 300 + panel / 2 * 315;
    const std::vector<double> weights = weights_of(distribution, kReadings[0]);
    const auto [least, largest] = std::minmax_element(weights.begin(), weights.end());
    const double decades = std::log10(*largest / *least);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double wide = kPanel / static_cast<double>(weights.size());
      const double tall = 5 + 255 * std::log10(weights[i] / *least) / decades;
      picture.box(left + static_cast<double>(i) * wide, base - tall, wide - 1, tall, "#6b8fbf");
    }
    std::ostringstream title;
    title << distribution.name << ": " << std::setprecision(2) << decades << " decades";
    picture.text(left, base - 275, title.str());
    ++panel;
  }
  picture.save();
}

/// Figure 8: Hammersley points on a map.
void write_figure8(const std::string& path) {
  constexpr std::uint32_t kPoints = 4096;
  const Density map = sky(24, 48);
  const float largest = *std::max_element(map.weights.begin(), map.weights.end());
  Picture picture(path, 1000, 280);
  double left = 10;
  for (const Method method : kBothMethods) {
    for (std::uint32_t y = 0; y < map.height; ++y) {
      for (std::uint32_t x = 0; x < map.width; ++x) {
        const double share = static_cast<double>(map.weights[y * map.width + x] / largest);
        const int grey = 250 - static_cast<int>(140 * std::pow(share, 0.4));
        const std::string level = std::to_string(grey);
        picture.box(left + x * 10, 30 + y * 10, 10.2, 10.2, "rgb(" + level + "," + level + "," + level + ")");
      }
    }
    const DrawnTable table(map, method);
    std::vector<std::array<double, 2>> dots;
    for (std::uint32_t i = 0; i < kPoints; ++i) {
      const sampling::Sample drawn = table.sample(sampling::hammersley_point(i, kPoints));
      dots.push_back({left + 480 * static_cast<double>(drawn.u), 30 + 240 * static_cast<double>(drawn.v)});
    }
    picture.dots(dots, 1.4, "#c03018");
    picture.text(left, 20, title(method));
    left += 500;
  }
  picture.save();
}

/// What lies between the numbers of a map: its density, and points drawn with it.
void write_interpolations(const std::string& path) {
  constexpr std::uint32_t kPoints = 2048;
  constexpr int kAcross = 36;
  constexpr int kDown = 24;
  const Density map{4, 6, {1, 1, 2, 6, 2, 1, 1, 3, 1, 2, 8, 2, 2, 9, 3, 1, 2, 1, 1, 2, 1, 1, 1, 5}};
  Picture picture(path, 1000, 360);
  double left = 10;
  for (const auto interpolation : {sampling::Interpolation::kConstant, sampling::Interpolation::kBilinear}) {
    const DrawnTable table(map, SamplingTableParams{}.method, interpolation);
    for (int i = 0; i < kAcross * kDown; ++i) {
      const int x = i % kAcross;
      const int y = i / kAcross;
      const double density = table.density((x + 0.5) / kAcross, (y + 0.5) / kDown);
      const std::string level = std::to_string(252 - static_cast<int>(36 * density));
      picture.box(left + x * 480.0 / kAcross, 30 + y * 320.0 / kDown, 480.2 / kAcross, 320.2 / kDown,
                  "rgb(" + level + "," + level + "," + level + ")");
    }
    std::vector<std::array<double, 2>> dots;
    for (std::uint32_t i = 0; i < kPoints; ++i) {
      const sampling::Sample drawn = table.sample(sampling::sobol_point(i));
      dots.push_back({left + 480 * static_cast<double>(drawn.u), 30 + 320 * static_cast<double>(drawn.v)});
    }
    picture.dots(dots, 1.6, "#c03018");
    picture.text(left, 20, interpolation == sampling::Interpolation::kConstant ? "constant" : "bilinear");
    left += 500;
  }
  picture.save();
}

struct PointSet {
  const char* name;
  const char* colour;
  FixedPoint2 (*point)(std::uint32_t i, std::uint64_t total);
};
constexpr PointSet kPointSets[] = {
    {"Hammersley", "#1f5fbf",
     [](std::uint32_t i, std::uint64_t total) { return sampling::hammersley_point(i, total); }},
    {"Sobol", "#2a9d4a", [](std::uint32_t i, std::uint64_t /*total*/) { return sampling::sobol_point(i); }},
    {"random", "#d1495b",
     [](std::uint32_t i, std::uint64_t /*total*/) { return sampling::random_point(i, 1); }},
};

/// The sum over texels of (p - c / n)^2.
double quadratic_error(const DrawnTable& table, std::uint32_t width, const std::vector<double>& probability,
                       const PointSet& set, int log2_samples) {
  const std::uint64_t total = std::uint64_t{1} << log2_samples;
  std::vector<std::uint32_t> count(probability.size());
  for (std::uint64_t i = 0; i < total; ++i) {
    const sampling::Sample drawn = table.sample(set.point(static_cast<std::uint32_t>(i), total));
    ++count[drawn.y * width + drawn.x];
  }
  double error = 0;
  for (std::size_t k = 0; k < count.size(); ++k) {
    error += std::pow(probability[k] - static_cast<double>(count[k]) / static_cast<double>(total), 2);
  }
  return error;
}

/// Figure 9: the error against the number of samples.
void write_figure9(const std::string& path, int log2_samples) {
  constexpr int kFewest = 8;
  const Density map = sky(64, 128);
  Picture picture(path, 900, 520);
  const auto across = [&](double log2) {
    return 60 + 600 * (log2 - kFewest) / std::max(1, log2_samples - kFewest);
  };
  const auto down = [](double error) { return 20 - 36 * (std::log10(error) + 2); };
  for (int decade = -14; decade <= -2; decade += 2) {
    picture.text(5, down(std::pow(10, decade)) + 4, "1e" + std::to_string(decade));
    picture.line({{60, down(std::pow(10, decade))}, {660, down(std::pow(10, decade))}}, "#ddd", false);
  }
  for (int log2 = kFewest; log2 <= log2_samples; log2 += 2)
    picture.text(across(log2) - 10, 500, "2^" + std::to_string(log2));
  std::printf(
      "\nFigure 9: quadratic error on a sky of 128 x 64, and of the alias table over it\n  %-12s %10s %12s "
      "%12s %8s\n",
      "points", "samples", "monotone", "alias", "ratio");
  double legend = 40;
  for (const PointSet& set : kPointSets) {
    std::vector<std::array<double, 2>> curves[2];
    for (int log2 = kFewest; log2 <= log2_samples; ++log2) {
      double errors[2];
      for (int k = 0; k < 2; ++k) {
        const DrawnTable table(map, kBothMethods[k]);
        errors[k] = quadratic_error(table, map.width, table.probabilities(), set, log2);
        curves[k].push_back({across(log2), down(errors[k])});
      }
      std::printf("  %-12s %10s %12.3g %12.3g %8.2f\n", set.name, ("2^" + std::to_string(log2)).c_str(),
                  errors[0], errors[1], errors[1] / errors[0]);
    }
    for (int k = 0; k < 2; ++k) {
      picture.line(curves[k], set.colour, k == 1);
      picture.line({{680, legend - 4}, {720, legend - 4}}, set.colour, k == 1);
      picture.text(730, legend, std::string(set.name) + (k == 1 ? ", alias" : ", monotone"));
      legend += 24;
    }
  }
  picture.save();
}

}  // namespace

void write_figures(const std::string& folder, int log2_samples) {
  write_figure1(folder + "/sampling_paper_fig1.svg");
  write_figure8(folder + "/sampling_paper_fig8.svg");
  write_figure7(folder + "/sampling_paper_fig7.svg");
  write_figure12(folder + "/sampling_paper_fig12.svg");
  write_interpolations(folder + "/sampling_interpolations.svg");
  write_figure9(folder + "/sampling_paper_fig9.svg", log2_samples);
}

}  // namespace cumulus::bench
