// Stands for pbrt-v4's header of this name: the class PiecewiseConstant2D, with the members' and functions'
// names and meanings of pbrt-v4's, of Pharr, Jakob and Humphreys, "Physically Based Rendering", 4th edition,
// A.5.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace pstd {
using std::span;
}

namespace pbrt {

using Float = float;

struct Allocator {};

struct Point2f {
  Float x = 0;
  Float y = 0;
};

/// A step function over [0, 1).
class PiecewiseConstant1D {
 public:
  explicit PiecewiseConstant1D(pstd::span<const Float> f = {}, Allocator = {})
      : func(f.begin(), f.end()), cdf(f.size() + 1, 0) {
    const auto cells = static_cast<Float>(std::max<std::size_t>(f.size(), 1));
    std::partial_sum(func.begin(), func.end(), cdf.begin() + 1);
    funcInt = cdf.back() / cells;
    for (std::size_t i = 0; i < cdf.size(); ++i) {
      cdf[i] = funcInt > 0 ? cdf[i] / (funcInt * cells) : static_cast<Float>(i) / cells;
    }
  }

  Float Integral() const { return funcInt; }
  std::size_t size() const { return func.size(); }

  Float Sample(Float u, Float* pdf, int* offset) const {
    const auto above = std::upper_bound(cdf.begin(), cdf.end(), u) - cdf.begin();
    const auto at = static_cast<std::size_t>(
        std::clamp<std::ptrdiff_t>(above - 1, 0, static_cast<std::ptrdiff_t>(size()) - 1));
    const Float width = cdf[at + 1] - cdf[at];
    *offset = static_cast<int>(at);
    *pdf = funcInt > 0 ? func[at] / funcInt : 0;
    return (static_cast<Float>(at) + (width > 0 ? (u - cdf[at]) / width : 0)) / static_cast<Float>(size());
  }

  std::vector<Float> func;
  std::vector<Float> cdf;
  Float funcInt = 0;
};

/// A step function over the unit square.
class PiecewiseConstant2D {
 public:
  PiecewiseConstant2D(pstd::span<const Float> data, int nx, int ny, Allocator = {}) {
    const auto columns = static_cast<std::size_t>(nx);
    std::vector<Float> integrals;
    for (std::size_t row = 0; row < static_cast<std::size_t>(ny); ++row) {
      pConditionalV.emplace_back(data.subspan(row * columns, columns));
      integrals.push_back(pConditionalV.back().Integral());
    }
    pMarginal = PiecewiseConstant1D(integrals);
  }

  Point2f Sample(const Point2f& u, Float* pdf) const {
    Float pdfs[2];
    int at[2];
    const Float y = pMarginal.Sample(u.y, &pdfs[1], &at[1]);
    const Float x = pConditionalV[static_cast<std::size_t>(at[1])].Sample(u.x, &pdfs[0], &at[0]);
    *pdf = pdfs[0] * pdfs[1];
    return {x, y};
  }

  Float PDF(const Point2f& p) const {
    const auto cell = [](Float position, std::size_t count) {
      return std::min(static_cast<std::size_t>(position * static_cast<Float>(count)), count - 1);
    };
    const PiecewiseConstant1D& row = pConditionalV[cell(p.y, pMarginal.size())];
    return row.func[cell(p.x, row.size())] / pMarginal.Integral();
  }

 private:
  std::vector<PiecewiseConstant1D> pConditionalV;
  PiecewiseConstant1D pMarginal;
};

}  // namespace pbrt
