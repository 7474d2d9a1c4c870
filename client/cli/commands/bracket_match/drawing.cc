#include "cli/commands/bracket_match/drawing.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "cli/commands/bracket_match/svg_document.h"
#include "cli/commands/bracket_match/svg_geometry.h"
#include "cli/commands/bracket_match/tokens.h"

namespace cumulus::cli {
namespace {

constexpr std::uint8_t kDraw = 0;
constexpr std::uint8_t kBegin = 1;
constexpr std::uint8_t kEnd = 2;

constexpr double kFontSize = 16;  // where none is said
constexpr int kDeepest = 512;     // elements and references in each other, when bounds are measured
constexpr std::size_t kMostMeasured = std::size_t{1} << 22;
constexpr std::int64_t kMostUses = std::int64_t{1} << 20;
constexpr std::size_t kMostElements = std::size_t{1} << 26;

template <std::size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Drawn by what names them, if at all.
constexpr std::array<std::string_view, 6> kDefinitions = {"defs", "clipPath", "symbol",
                                                          "mask", "pattern",  "marker"};
constexpr std::array<std::string_view, 4> kContainers = {"svg", "g", "a", "switch"};
/// Of which nothing is seen.
constexpr std::array<std::string_view, 12> kSilent = {
    "title",          "desc",   "metadata", "style",  "script", "linearGradient",
    "radialGradient", "filter", "view",     "cursor", "font",   "color-profile"};

SvgBox intersection(const SvgBox& a, const SvgBox& b) {
  if (a.empty() || b.empty()) return {};
  return {std::max(a.x0, b.x0), std::max(a.y0, b.y0), std::min(a.x1, b.x1), std::min(a.y1, b.y1)};
}

SvgTransform translation(double x, double y) { return {1, 0, 0, 1, x, y}; }

SvgTransform offset_of_use(const SvgTag& tag) { return translation(tag.length("x"), tag.length("y")); }

void add(const SvgBox& box, SvgBox& sum) {
  if (box.empty()) return;
  sum.add({box.x0, box.y0});
  sum.add({box.x1, box.y1});
}

/// Bounds of elements and of clips, without drawing anything.
class Measure {
 public:
  explicit Measure(const SvgDocument& document) : document_(document) {}

  /// Of all that an element draws, in the units that hold within it, clips not counted.
  SvgBox bounds(std::size_t index, double em, int depth = 0) const {
    const SvgElement& element = document_.elements[index];
    if (depth > kDeepest || ++measured_ > kMostMeasured) {
      gave_up_ = true;
      return {};
    }
    if (is_svg_shape(element.name)) return svg_shape_box(element);
    const double size = svg_length(element.tag.property("font-size"), em, em);
    if (element.name == "text") return svg_text_box(document_, index, size);
    if (element.name == "use") {
      const std::size_t target = document_.find(element.tag.href());
      if (target == document_.elements.size()) return {};
      const SvgTransform moved = offset_of_use(element.tag).after(document_.elements[target].tag.transform());
      return moved.apply(bounds(target, size, depth + 1));
    }
    SvgBox sum;
    for (std::size_t child = index + 1; child < element.end; child = document_.elements[child].end) {
      if (is_one_of(document_.elements[child].name, kDefinitions)) continue;
      add(document_.elements[child].tag.transform().apply(bounds(child, size, depth + 1)), sum);
    }
    return sum;
  }

  /// What the clipPath `id` leaves, in the units of the element that names it; `own` are that element's
  /// bounds, asked for where the clip is in shares of them. Nothing where there is no such clipPath.
  std::optional<SvgBox> clip(std::string_view id, const std::function<SvgBox()>& own, int depth = 0) const {
    const std::size_t index = document_.find(id);
    if (index == document_.elements.size() || document_.elements[index].name != "clipPath")
      return std::nullopt;
    if (depth > kDeepest || ++measured_ > kMostMeasured) {
      gave_up_ = true;
      return SvgBox();
    }
    const SvgElement& path = document_.elements[index];
    SvgTransform units = path.tag.transform();
    if (path.tag.text("clipPathUnits") == "objectBoundingBox") {
      const SvgBox box = own();
      if (box.empty()) return SvgBox();
      units = SvgTransform{box.x1 - box.x0, 0, 0, box.y1 - box.y0, box.x0, box.y0}.after(units);
    }
    SvgBox sum;
    for (std::size_t child = index + 1; child < path.end; child = document_.elements[child].end) {
      const SvgElement& part = document_.elements[child];
      SvgBox box = bounds(child, kFontSize);
      const auto clipped = clip(
          part.tag.reference("clip-path"), [&] { return bounds(child, kFontSize); }, depth + 1);
      if (clipped.has_value()) box = intersection(box, *clipped);
      add(part.tag.transform().apply(box), sum);
    }
    SvgBox whole = units.apply(sum);
    const auto clipped = clip(path.tag.reference("clip-path"), own, depth + 1);
    return clipped.has_value() ? intersection(whole, *clipped) : whole;
  }

  /// Whether there was too much to measure.
  bool gave_up() const { return gave_up_; }

 private:
  const SvgDocument& document_;
  mutable std::size_t measured_ = 0;
  mutable bool gave_up_ = false;
};

/// Draws the elements with a stack of what each means for what is in it.
class DrawingReader {
 public:
  explicit DrawingReader(const SvgDocument& document) : document_(document), measure_(document) {}

  absl::StatusOr<DrawingScene> run(const std::optional<DrawingBox>& view) && {
    if (view.has_value()) put(kBegin, *view, 0);
    Frame whole;
    whole.end = document_.elements.size();
    frames_.push_back(whole);
    while (!frames_.empty() && problem_.empty()) {
      Frame& frame = frames_.back();
      if (frame.next < frame.end) {
        const std::size_t child = frame.next;
        frame.next = document_.elements[child].end;
        enter(child, frame);
      } else {
        for (int i = 0; i < frame.clips; ++i) put(kEnd, {0, 0, 0, 0}, frame.close_offset);
        frames_.pop_back();
      }
    }
    if (view.has_value()) put(kEnd, *view, static_cast<std::int64_t>(document_.text.size()));
    if (!problem_.empty()) return absl::InvalidArgumentError(problem_);
    return std::move(scene_);
  }

 private:
  /// An element whose children are being drawn; of a <use>, what it names is its one child.
  struct Frame {
    std::size_t element = static_cast<std::size_t>(-1);
    std::size_t next = 0;
    std::size_t end = 0;
    SvgTransform transform;
    double em = kFontSize;
    int clips = 0;  // that end with it
    std::int64_t close_offset = 0;
    const SvgTag* use = nullptr;  // the <use> that draws the child
  };

  void enter(std::size_t index, const Frame& around) {
    const SvgElement& element = document_.elements[index];
    const bool used = around.use != nullptr;
    // Editors keep their own matter under names of their own.
    const bool foreign = element.name.find(':') != std::string_view::npos;
    if (foreign || is_one_of(element.name, kSilent)) return;
    if (is_one_of(element.name, kDefinitions) && !(used && element.name == "symbol")) return;
    Frame frame;
    frame.element = index;
    frame.next = index + 1;
    frame.end = element.end;
    frame.em = svg_length(element.tag.property("font-size"), around.em, around.em);
    frame.transform = around.transform.after(element.tag.transform());
    frame.close_offset = element.close_offset;
    begin_clips(index, around, frame);
    draw(index, frame);
  }

  void draw(std::size_t index, Frame& frame) {
    const SvgElement& element = document_.elements[index];
    const bool holds_others = is_one_of(element.name, kContainers) || element.name == "symbol";
    if (is_svg_shape(element.name)) {
      draw_box(frame.transform.apply(svg_shape_box(element)), element.offset);
      frame.next = frame.end;
    } else if (element.name == "text") {
      const SvgBox box = svg_text_box(document_, index, frame.em);
      if (!box.empty()) ++scene_.texts;
      draw_box(frame.transform.apply(box), element.offset);
      frame.next = frame.end;
    } else if (element.name == "use") {
      draw_used(element, frame);
    } else if (!holds_others) {
      ++scene_.skipped[std::string(element.name)];
      frame.next = frame.end;
    }
    if (problem_.empty()) frames_.push_back(frame);
  }

  void draw_used(const SvgElement& use, Frame& frame) {
    const std::size_t target = document_.find(use.tag.href());
    frame.next = frame.end;
    if (target == document_.elements.size()) {
      ++scene_.skipped["use of what is not there"];
      return;
    }
    const bool within = std::any_of(frames_.begin(), frames_.end(),
                                    [&](const Frame& around) { return around.element == target; });
    if (within) {
      ++scene_.skipped["use of what it is in"];
      return;
    }
    if (++scene_.uses > kMostUses)
      complain(use.offset,
               "the drawing's <use> elements draw others more than 2^20 times; take some of them out");
    frame.next = target;
    frame.end = document_.elements[target].end;
    frame.transform = frame.transform.after(offset_of_use(use.tag));
    frame.use = &use.tag;
  }

  void begin_clips(std::size_t index, const Frame& around, Frame& frame) {
    const SvgElement& element = document_.elements[index];
    const auto begin = [&](const SvgBox& box) {
      put(kBegin, boxed(frame.transform.apply(box)), element.offset);
      ++frame.clips;
    };
    if (const std::string_view id = element.tag.reference("clip-path"); !id.empty()) {
      const auto left = measure_.clip(id, [&] { return measure_.bounds(index, around.em); });
      if (measure_.gave_up())
        complain(element.offset, "the clips from here on name each other too often or too deeply");
      if (left.has_value()) begin(*left);
      if (!left.has_value()) ++scene_.skipped["clip-path of what is not there"];
    }
    for (const char* property : {"mask", "filter"}) {
      if (!element.tag.reference(property).empty()) ++scene_.skipped[property];
    }
    if (element.name == "svg" || element.name == "symbol") begin_viewport(element, around, frame, begin);
  }

  template <class Begin>
  void begin_viewport(const SvgElement& element, const Frame& around, Frame& frame, const Begin& begin) {
    const std::vector<double> window = parse_svg_numbers(element.tag.text("viewBox"));
    const bool outermost = !std::exchange(seen_svg_, true);
    // A <use> may say the size of what it draws.
    const auto extent = [&](const char* name) {
      const double own = element.tag.length(name);
      return around.use != nullptr ? around.use->length(name, own) : own;
    };
    const double x = outermost || element.name == "symbol" ? 0 : element.tag.length("x");
    const double y = outermost || element.name == "symbol" ? 0 : element.tag.length("y");
    SvgBox viewport;
    if (outermost && window.size() == 4) {
      viewport.add({window[0], window[1]});
      viewport.add({window[0] + window[2], window[1] + window[3]});
    } else if (extent("width") > 0 && extent("height") > 0) {
      viewport.add({x, y});
      viewport.add({x + extent("width"), y + extent("height")});
    }
    if (viewport.x1 > viewport.x0 && viewport.y1 > viewport.y0) begin(viewport);
    if (outermost) return;
    if (window.size() != 4 || !(window[2] > 0) || !(window[3] > 0)) {
      frame.transform = frame.transform.after(translation(x, y));
      return;
    }
    const double width = extent("width") > 0 ? extent("width") : window[2];
    const double height = extent("height") > 0 ? extent("height") : window[3];
    const double scale = std::min(width / window[2], height / window[3]);
    frame.transform =
        frame.transform.after({scale, 0, 0, scale, x - scale * window[0], y - scale * window[1]});
  }

  void draw_box(const SvgBox& box, std::int64_t offset) {
    if (!box.empty()) put(kDraw, boxed(box), offset);
  }

  static DrawingBox boxed(const SvgBox& box) {
    return {static_cast<float>(box.x0), static_cast<float>(box.y0), static_cast<float>(box.x1),
            static_cast<float>(box.y1)};
  }

  void put(std::uint8_t element, const DrawingBox& box, std::int64_t offset) {
    for (const float side : box) {
      if (std::isnan(side)) complain(offset, "this element's geometry is no number");
    }
    if (scene_.elements.size() == kMostElements)
      complain(offset, "the drawing has more than 2^26 shapes and clips; take some of them out");
    scene_.elements.push_back(element);
    scene_.boxes.push_back(box);
    scene_.offsets.push_back(offset);
  }

  void complain(std::int64_t offset, const char* what) {
    if (problem_.empty()) problem_ = absl::StrCat(line_and_column(document_.text, offset), ": ", what);
  }

  const SvgDocument& document_;
  const Measure measure_;
  std::vector<Frame> frames_;
  bool seen_svg_ = false;
  std::string problem_;
  DrawingScene scene_;
};

}  // namespace

absl::StatusOr<DrawingScene> read_drawing(std::string_view document, const std::optional<DrawingBox>& view) {
  const absl::StatusOr<SvgDocument> parsed = parse_svg_document(document);
  if (!parsed.ok()) return parsed.status();
  return DrawingReader(*parsed).run(view);
}

}  // namespace cumulus::cli
