#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/bracket_match/intersect_clips.h"
#include "tests/cases/bracket_match_clips_case.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using testing::BackendArray;
using testing::ClipScene;
using ::testing::HasSubstr;
using testing::make_scene;
using testing::naive_clip_bounds;
using testing::ScenePattern;
using testing::verify_clip_bounds;
using Fault = BracketReport::Fault;

struct Intersected {
  std::vector<float> bounds;
  ClipReport report;
};

/// In fresh, poisoned memory; checks that exactly the stated scratch was taken.
template <class Backend>
Intersected intersect(Backend& backend, const ClipScene& scene) {
  BackendArray<Backend, std::uint8_t> elements(backend, scene.elements);
  BackendArray<Backend, float> boxes(backend, scene.boxes);
  BackendArray<Backend, float> bounds(backend, scene.boxes.size());
  const std::size_t scratch =
      intersect_clips_scratch_bytes<Backend::kSpace>(static_cast<std::int64_t>(scene.elements.size()));
  backend.executor().reserve_scratch(scratch);
  Intersected result;
  intersect_clips(backend.executor(), elements.const_span(), boxes.const_span(), bounds.span(),
                  &result.report);
  backend.executor().synchronize();
  EXPECT_EQ(backend.executor().scratch_arena().used_bytes(), scratch);
  result.bounds = bounds.to_host();
  return result;
}

/// A scene in letters: d draws, ( begins a clip, ) ends it. Element i has the box (i, 0, 100 - i, 100).
ClipScene scene_of(const std::string& letters) {
  ClipScene scene;
  for (const char letter : letters) {
    scene.elements.push_back(letter == 'd' ? 0 : letter == '(' ? 1 : 2);
    const auto i = static_cast<float>(scene.elements.size() - 1);
    scene.boxes.insert(scene.boxes.end(), {i, 0, 100 - i, 100});
  }
  return scene;
}

template <class Backend>
class IntersectClips : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(IntersectClips, testing::Backends, testing::BackendNames);

TYPED_TEST(IntersectClips, MatchesTheOracleOnEveryScene) {
  for (const ScenePattern pattern : testing::kScenePatterns) {
    for (const std::int64_t size : {0, 1, 2, 3, 33, 257, 4096, 4097, 16384, 16385, 40009, 300007}) {
      SCOPED_TRACE(std::string(name_of(pattern)) + ", " + std::to_string(size) + " elements");
      const ClipScene scene = make_scene(pattern, size);
      const Intersected got = intersect(this->backend(), scene);
      EXPECT_EQ(verify_clip_bounds(naive_clip_bounds(scene), got.bounds), "");
      EXPECT_EQ(got.report.nesting.fault, Fault::kNone);
      EXPECT_EQ(got.report.wrong_element, -1);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TYPED_TEST(IntersectClips, ClipsWhatIsInsideAndNothingElse) {
  const Intersected got = intersect(this->backend(), scene_of("d(d)d"));
  EXPECT_EQ(got.bounds, (std::vector<float>{0, 0, 100, 100, 1, 0, 99, 100, 2, 0, 98, 100, 1, 0, 99, 100,  //
                                            4, 0, 96,  100}));
}

TYPED_TEST(IntersectClips, SaysWhereClipsAreUnbalanced) {
  BracketReport report = intersect(this->backend(), scene_of("d)d")).report.nesting;
  EXPECT_EQ(report.fault, Fault::kUnexpectedClose);
  EXPECT_EQ(report.position, 1);
  report = intersect(this->backend(), scene_of("d(dd")).report.nesting;
  EXPECT_EQ(report.fault, Fault::kUnclosed);
  EXPECT_EQ(report.position, 4);
  EXPECT_EQ(report.open_position, 1);
}

TYPED_TEST(IntersectClips, RefusesWhatIsNoElementAndBoxesThatAreNotNumbers) {
  ClipScene scene = make_scene(ScenePattern::kDrawing, 50000);
  EXPECT_EQ(intersect(this->backend(), scene).report.wrong_element, -1);
  scene.elements[49990] = 3;
  EXPECT_EQ(intersect(this->backend(), scene).report.wrong_element, 49990);
  const auto first_draw = static_cast<std::size_t>(
      std::find(scene.elements.begin() + 20000, scene.elements.end(), 0) - scene.elements.begin());
  for (std::size_t side = 0; side < 4; ++side) {
    ClipScene other = scene;
    other.boxes[4 * first_draw + side] = std::nanf("");
    EXPECT_EQ(intersect(this->backend(), other).report.wrong_element, static_cast<std::int64_t>(first_draw));
  }
}

TYPED_TEST(IntersectClips, RefusesSizesThatDoNotFit) {
  constexpr Space kSpace = TypeParam::kSpace;
  ClipReport report;
  const Span<const std::uint8_t, kSpace> elements(nullptr, 3);
  const Span<float, kSpace> right(nullptr, 12);
  const Span<float, kSpace> wrong(nullptr, 11);
  EXPECT_THAT(
      [&] { intersect_clips(this->executor(), elements, wrong, right, &report); },
      ::testing::ThrowsMessage<std::invalid_argument>(HasSubstr("boxes has 11 numbers; 4 for each of 3")));
  EXPECT_THAT([&] { intersect_clips(this->executor(), elements, right, wrong, &report); },
              ::testing::ThrowsMessage<std::invalid_argument>(HasSubstr("bounds has 11 numbers")));
}

TEST(IntersectClipsVerifier, RefusesOneWrongNumber) {
  testing::CpuBackend backend;
  const ClipScene scene = make_scene(ScenePattern::kRandom, 500);
  std::vector<float> bounds = intersect(backend, scene).bounds;
  bounds[1234] += 1;
  EXPECT_THAT(verify_clip_bounds(naive_clip_bounds(scene), bounds), HasSubstr("bound 2 of element 308"));
}

}  // namespace
}  // namespace cumulus
