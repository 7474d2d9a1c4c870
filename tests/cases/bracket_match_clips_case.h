#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

// Clips of scenes: generators, oracle, verifier, bytes moved. For tests and benchmarks.

namespace cumulus::testing {

using ClipBox = std::array<float, 4>;

struct ClipScene {
  std::vector<std::uint8_t> elements;  // 0 draws, 1 begins a clip, 2 ends it
  std::vector<float> boxes;            // 4 of each

  ClipBox box(std::size_t i) const {
    return {boxes[4 * i], boxes[4 * i + 1], boxes[4 * i + 2], boxes[4 * i + 3]};
  }
};

enum class ScenePattern {
  kDrawing,   // as drawings are: mostly draws, clips a few deep
  kRandom,    // begins, ends and draws with equal chance
  kDeep,      // begins, then ends
  kSiblings,  // a clip around each draw
  kStairs,    // ends most of what was begun, then begins more
  kNoClips,
};
inline const std::vector<ScenePattern> kScenePatterns = {ScenePattern::kDrawing, ScenePattern::kRandom,
                                                         ScenePattern::kDeep,    ScenePattern::kSiblings,
                                                         ScenePattern::kStairs,  ScenePattern::kNoClips};

inline const char* name_of(ScenePattern pattern) {
  constexpr const char* kNames[] = {"drawing", "random", "deep", "siblings", "stairs", "no-clips"};
  return kNames[static_cast<int>(pattern)];
}

/// A balanced scene of `size` elements. Boxes are large, so that deep nesting leaves something; one in 16 is
/// without limits to the right.
inline ClipScene make_scene(ScenePattern pattern, std::int64_t size, std::uint32_t seed = 1) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  ClipScene scene;
  std::int64_t depth = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    int what = 0;
    switch (pattern) {
      case ScenePattern::kDrawing:
        what = below(10) == 0 ? (depth < 5 && below(2) == 0 ? 1 : 2) : 0;
        break;
      case ScenePattern::kRandom:
        what = static_cast<int>(below(3));
        break;
      case ScenePattern::kDeep:
        what = i < size / 2 ? 1 : 2;
        break;
      case ScenePattern::kSiblings:
        what = i % 3 == 0 ? 1 : i % 3 == 1 ? 0 : 2;
        break;
      case ScenePattern::kStairs:
        what = i < 4096 || i % 4096 >= 2047 ? 1 : 2;
        break;
      case ScenePattern::kNoClips:
        break;
    }
    // Balanced: nothing ends that has not begun, and all ends in time.
    if (what == 2 && depth == 0) what = 0;
    if (depth >= size - i) what = 2;
    if (what == 1 && depth + 1 > size - i - 1) what = 0;
    depth += what == 1 ? 1 : what == 2 ? -1 : 0;
    scene.elements.push_back(static_cast<std::uint8_t>(what));
    const auto x = static_cast<float>(below(1000));
    const auto y = static_cast<float>(below(1000));
    const float right = below(16) == 0 ? std::numeric_limits<float>::infinity() : 2000 + x;
    scene.boxes.insert(scene.boxes.end(), {x, y, right, 1500 + y});
    if (what == 2) scene.boxes[4 * static_cast<std::size_t>(i)] = std::nanf("");  // nobody reads it
  }
  return scene;
}

/// What a stack of boxes gives.
inline std::vector<float> naive_clip_bounds(const ClipScene& scene) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<ClipBox> stack = {{-kInfinity, -kInfinity, kInfinity, kInfinity}};
  std::vector<float> bounds;
  for (std::size_t i = 0; i < scene.elements.size(); ++i) {
    ClipBox bound = stack.back();
    if (scene.elements[i] == 2) {
      stack.pop_back();
    } else {
      const ClipBox box = scene.box(i);
      bound = {std::max(box[0], bound[0]), std::max(box[1], bound[1]), std::min(box[2], bound[2]),
               std::min(box[3], bound[3])};
    }
    if (scene.elements[i] == 1) stack.push_back(bound);
    bounds.insert(bounds.end(), bound.begin(), bound.end());
  }
  return bounds;
}

/// Exact. The first difference, or empty.
inline std::string verify_clip_bounds(const std::vector<float>& right, const std::vector<float>& got) {
  if (got.size() != right.size()) return "there are " + std::to_string(got.size()) + " numbers";
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (got[i] == right[i]) continue;
    std::ostringstream text;
    text << "bound " << i % 4 << " of element " << i / 4 << ": " << got[i] << ", not " << right[i];
    return text.str();
  }
  return "";
}

/// Bytes that intersecting has to move: elements and boxes read, bounds written.
inline std::int64_t clip_bytes(std::int64_t size) { return size * (1 + 16 + 16); }

}  // namespace cumulus::testing
