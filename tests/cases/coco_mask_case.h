#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "cumulus/coco_masks.h"
#include "tests/support/test_data.h"

// COCO masks: what pycocotools makes of a few, and the serial oracle. For tests.

namespace cumulus::testing {

/// A line of coco_masks.txt, which pycocotools wrote.
struct GoldenMask {
  std::string name;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::string text;
  std::int64_t area = 0;
  CocoBox box;
};

inline std::vector<GoldenMask> golden_masks() {
  std::ifstream file(test_data("coco_masks.txt"));
  std::vector<GoldenMask> all;
  for (GoldenMask g; file >> g.name >> g.height >> g.width >> g.text >> g.area >> g.box.x >> g.box.y >>
                     g.box.width >> g.box.height;) {
    all.push_back(g);
  }
  return all;
}

/// The mask that coco_masks.txt means by a name.
inline bool is_in_mask(const std::string& name, std::int64_t y, std::int64_t x) {
  if (name == "full") return true;
  if (name == "one_pixel") return y == 2 && x == 3;
  if (name == "first_pixel") return y == 0 && x == 0;
  if (name == "stripes") return (x * 7 + y * 13) % 11 < 5;
  if (name == "checkers") return (x + y) % 2 == 1;
  if (name == "disk") return (y - 50) * (y - 50) + (x - 90) * (x - 90) < 40 * 40;
  if (name == "ring") {
    const std::int64_t square = (y - 240) * (y - 240) + (x - 320) * (x - 320);
    return square < 200 * 200 && square > 150 * 150;
  }
  if (name == "wide") return x / 9 % 2 == 1;
  if (name == "tall") return y / 9 % 2 == 1;
  if (name == "large") return x > 2000;
  if (name == "noise") return (x * x * 31 + y * y * 17 + x * y * 7) % 13 < 6;
  return false;
}

/// Zeros and ones, row by row.
inline std::vector<std::uint8_t> pixels_of(const GoldenMask& golden) {
  std::vector<std::uint8_t> mask;
  for (std::int64_t y = 0; y < golden.height; ++y) {
    for (std::int64_t x = 0; x < golden.width; ++x) mask.push_back(is_in_mask(golden.name, y, x) ? 1 : 0);
  }
  return mask;
}

}  // namespace cumulus::testing
