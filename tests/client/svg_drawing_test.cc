#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "cli/commands/bracket_match/drawing.h"
#include "cli/commands/bracket_match/picture.h"
#include "cli/commands/bracket_match/svg_geometry.h"

namespace cumulus::cli {
namespace {

using Elements = std::vector<std::uint8_t>;

SvgBox path_box(std::string_view path) {
  SvgBox box;
  for (const SvgPoint& point : svg_path_points(path)) box.add(point);
  return box;
}

void expect_box(const SvgBox& box, double x0, double y0, double x1, double y1) {
  EXPECT_NEAR(box.x0, x0, 1e-9);
  EXPECT_NEAR(box.y0, y0, 1e-9);
  EXPECT_NEAR(box.x1, x1, 1e-9);
  EXPECT_NEAR(box.y1, y1, 1e-9);
}

DrawingScene scene_of(const std::string& document) {
  absl::StatusOr<DrawingScene> scene = read_drawing(document, std::nullopt);
  EXPECT_TRUE(scene.ok()) << scene.status();
  return scene.ok() ? *std::move(scene) : DrawingScene();
}

TEST(SvgGeometry, FollowsAPathsCommands) {
  expect_box(path_box("M1,2L3-4"), 1, -4, 3, 2);
  expect_box(path_box("m 1 2 3 4 5 -6"), 1, 0, 9, 6);
  expect_box(path_box("M0 0H5V7h-6v-8"), -1, -1, 5, 7);
  expect_box(path_box("M0 0C1 9 2 -9 3 0"), 0, -9, 3, 9);
  expect_box(path_box("M10 10c0 5 5 5 5 0s5-5 5 0"), 10, 5, 20, 15);
  expect_box(path_box("M1e1.5l1e-1.5"), 10, 0.5, 10.1, 1);
  expect_box(path_box("M1 1L2 2zl1 0"), 1, 1, 2, 2);
}

TEST(SvgGeometry, HoldsAnArcWithinItsRadiisReach) {
  // Half a circle of radius 5 from (0, 0) to (10, 0), flags without anything between them.
  const SvgBox box = path_box("M0 0A5 5 0 0110 0");
  EXPECT_LE(box.y0, -5);
  EXPECT_GE(box.y1, 0);
  EXPECT_LE(box.x0, 0);
  EXPECT_GE(box.x1, 10);
}

TEST(SvgGeometry, AppliesTransformsFromTheRight) {
  const SvgPoint moved = parse_svg_transform("translate(10, 20) scale(2)").apply(SvgPoint{1, 1});
  EXPECT_NEAR(moved.x, 12, 1e-9);
  EXPECT_NEAR(moved.y, 22, 1e-9);
  const SvgPoint turned = parse_svg_transform("rotate(90 1 1)").apply(SvgPoint{2, 1});
  EXPECT_NEAR(turned.x, 1, 1e-9);
  EXPECT_NEAR(turned.y, 2, 1e-9);
  const SvgPoint skewed = parse_svg_transform("matrix(1 0 1 1 0 0),skewY(45)").apply(SvgPoint{1, 0});
  EXPECT_NEAR(skewed.x, 2, 1e-9);
  EXPECT_NEAR(skewed.y, 1, 1e-9);
}

TEST(SvgDrawing, BecomesASceneOfDrawsAndClips) {
  const DrawingScene scene = scene_of(
      "<svg width='10' height='1in'><defs><rect width='9' height='9'/></defs>"
      "<clipPath id='c'><circle cx='5' cy='5' r='2'/><circle cx='7' cy='5' r='1'/></clipPath>"
      "<g style='fill:red;clip-path:url(#c)' transform='scale(2)'><line x1='1' y1='1' x2='3' y2='2'/></g>"
      "<polygon points='1,2 3,4'/></svg>");
  EXPECT_EQ(scene.elements, (Elements{1, 1, 0, 2, 0, 2}));
  EXPECT_EQ(scene.boxes[0], (DrawingBox{0, 0, 10, 96}));
  EXPECT_EQ(scene.boxes[1], (DrawingBox{6, 6, 16, 14}));
  EXPECT_EQ(scene.boxes[2], (DrawingBox{2, 2, 6, 4}));
  EXPECT_EQ(scene.boxes[4], (DrawingBox{1, 2, 3, 4}));
}

TEST(SvgDrawing, PutsInnerViewportsInTheirPlaces) {
  const DrawingScene scene = scene_of(
      "<svg viewBox='-5 -5 20 20'><svg x='1' y='2' width='10' height='10' viewBox='0 0 5 5'>"
      "<rect x='1' width='1' height='1'/></svg></svg>");
  EXPECT_EQ(scene.elements, (Elements{1, 1, 0, 2, 2}));
  EXPECT_EQ(scene.boxes[0], (DrawingBox{-5, -5, 15, 15}));
  EXPECT_EQ(scene.boxes[1], (DrawingBox{1, 2, 11, 12}));
  EXPECT_EQ(scene.boxes[2], (DrawingBox{3, 2, 5, 4}));
}

TEST(SvgDrawing, UsesDrawWhatTheyName) {
  const DrawingScene scene = scene_of(
      "<svg><defs><g id='pair'><rect id='one' width='1' height='1'/><rect x='2' width='1' "
      "height='1'/></g></defs>"
      "<use href='#pair' x='10' y='20' transform='scale(2)'/><use xlink:href='#one'/><use "
      "href='#none'/></svg>");
  EXPECT_EQ(scene.elements, (Elements{0, 0, 0}));
  EXPECT_EQ(scene.boxes[0], (DrawingBox{20, 40, 22, 42}));
  EXPECT_EQ(scene.boxes[1], (DrawingBox{24, 40, 26, 42}));
  EXPECT_EQ(scene.boxes[2], (DrawingBox{0, 0, 1, 1}));
  EXPECT_EQ(scene.uses, 2);
  EXPECT_EQ(scene.skipped.at("use of what is not there"), 1);
}

TEST(SvgDrawing, ASymbolIsAViewportOfTheUsesSize) {
  const DrawingScene scene = scene_of(
      "<svg><symbol id='s' viewBox='0 0 10 10'><rect width='20' height='10'/></symbol>"
      "<use href='#s' x='5' width='40' height='40'/></svg>");
  EXPECT_EQ(scene.elements, (Elements{1, 0, 2}));
  EXPECT_EQ(scene.boxes[0], (DrawingBox{5, 0, 45, 40}));
  EXPECT_EQ(scene.boxes[1], (DrawingBox{5, 0, 85, 40}));
}

TEST(SvgDrawing, UsesOfThemselvesEnd) {
  const DrawingScene scene =
      scene_of("<svg><g id='g'><rect width='1' height='1'/><use href='#g'/></g></svg>");
  EXPECT_EQ(scene.elements, Elements{0});
  EXPECT_EQ(scene.skipped.at("use of what it is in"), 1);
  std::string laughs = "<svg><rect id='l0' width='1' height='1'/>";
  for (int i = 1; i < 40; ++i) {
    const std::string use = "<use href='#l" + std::to_string(i - 1) + "'/>";
    laughs += "<g id='l" + std::to_string(i) + "'>" + use + use + "</g>";
  }
  const auto refused = read_drawing(laughs + "</svg>", std::nullopt);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(std::string(refused.status().message()).find("draw others more than 2^20 times"),
            std::string::npos)
      << refused.status();
  laughs.insert(5,
                "<clipPath id='c' clipPathUnits='objectBoundingBox'><rect width='1' height='1'/></clipPath>"
                "<g clip-path='url(#c)'><use href='#l39'/></g>");
  EXPECT_FALSE(read_drawing(laughs + "</svg>", std::nullopt).ok());
}

TEST(SvgDrawing, TextHasAnEstimatedBox) {
  const DrawingScene scene = scene_of(
      "<svg><g font-size='10'><text x='100' y='50'>four</text>"
      "<text x='100' y='50' style='text-anchor:middle;font-size:20px'>ab<tspan x='0' "
      "y='90'>cd</tspan></text></g></svg>");
  EXPECT_EQ(scene.texts, 2);
  EXPECT_EQ(scene.boxes[0], (DrawingBox{100, 42, 124, 52}));
  EXPECT_EQ(scene.boxes[1], (DrawingBox{-12, 34, 112, 94}));
}

TEST(SvgDrawing, ClipsMayBeInSharesOfWhatTheyClip) {
  const DrawingScene scene = scene_of(
      "<svg><clipPath id='half' clipPathUnits='objectBoundingBox' transform='translate(0.5 0)'>"
      "<rect width='0.5' height='1'/></clipPath>"
      "<g transform='scale(2)' clip-path='url(#half)'><rect x='10' y='10' width='10' height='10'/>"
      "<rect x='40' y='10' width='10' height='30'/></g></svg>");
  EXPECT_EQ(scene.elements, (Elements{1, 0, 0, 2}));
  EXPECT_EQ(scene.boxes[0], (DrawingBox{60, 20, 100, 80}));
}

TEST(SvgDrawing, ClipPathsAreTransformedAndClipped) {
  const DrawingScene scene = scene_of(
      "<svg><clipPath id='inner'><rect width='4' height='100'/></clipPath>"
      "<clipPath id='outer' transform='translate(1 2)' clip-path='url(#inner)'>"
      "<rect transform='scale(2)' width='5' height='5'/></clipPath>"
      "<rect clip-path='url(#outer)' width='50' height='50'/></svg>");
  EXPECT_EQ(scene.boxes[0], (DrawingBox{1, 2, 4, 12}));
}

TEST(SvgDrawing, WhatIsSkippedIsCounted) {
  const DrawingScene scene = scene_of(
      "<svg><title>none</title><foreignObject><p>text</p></foreignObject><video/><foreignObject/>"
      "<rect mask='url(#m)' clip-path='url(#c)' width='1' height='1'/></svg>");
  EXPECT_EQ(scene.elements, Elements{0});
  EXPECT_EQ(scene.skipped,
            (std::map<std::string, std::int64_t>{
                {"clip-path of what is not there", 1}, {"foreignObject", 2}, {"mask", 1}, {"video", 1}}));
}

TEST(SvgDrawing, ShowsWhatIsLeftInColor) {
  DrawingScene scene;
  scene.elements = {1, 0, 0, 2};
  scene.boxes = {{0, 0, 10, 10}, {2, 2, 4, 4}, {20, 2, 24, 4}, {0, 0, 0, 0}};
  const std::vector<DrawingBox> bounds = {{0, 0, 10, 10}, {2, 2, 4, 4}, {20, 2, 10, 4}, {0, 0, 10, 10}};
  EXPECT_EQ(remainder_of(scene.boxes[1], bounds[1]), Remainder::kAll);
  EXPECT_EQ(remainder_of(scene.boxes[2], bounds[2]), Remainder::kNothing);
  EXPECT_EQ(remainder_of({0, 0, 9, 0}, {0, 0, 5, 0}), Remainder::kPart) << "a line along an axis";
  const absl::StatusOr<Array> picture = draw_clipped_boxes(scene, bounds);
  ASSERT_TRUE(picture.ok());
  EXPECT_EQ(picture->shape()[1], 1025);
  const auto pixel = [&](std::int64_t x, std::int64_t y) {
    const auto bytes =
        picture->values<std::uint8_t>()->subspan(static_cast<std::size_t>(3 * (y * 1025 + x)), 3);
    return std::vector<int>(bytes.begin(), bytes.end());
  };
  const auto at = [](double unit) { return static_cast<std::int64_t>(8 + unit * 1008 / 24); };
  EXPECT_EQ(pixel(at(0), at(5)), (std::vector<int>{0, 0, 0})) << "the clip's border";
  EXPECT_EQ(pixel(at(15), at(5)), (std::vector<int>{255, 255, 255})) << "paper";
  const std::vector<int> culled = pixel(at(20), at(3));
  EXPECT_GT(culled[0], culled[1]) << "red";
}

}  // namespace
}  // namespace cumulus::cli
