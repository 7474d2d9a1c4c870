#include "cli/commands/bracket_match/drawing.h"

#include <absl/strings/str_cat.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "cli/commands/bracket_match/svg_geometry.h"
#include "cli/commands/bracket_match/tokens.h"

namespace cumulus::cli {
namespace {

constexpr std::uint8_t kDraw = 0;
constexpr std::uint8_t kBegin = 1;
constexpr std::uint8_t kEnd = 2;

/// The attributes of one tag.
class Tag {
 public:
  /// `text` begins with the tag's <.
  explicit Tag(std::string_view text) {
    std::size_t at = text.find_first_of(" \t\r\n/>", 1);
    while (at < text.size()) {
      at = text.find_first_not_of(" \t\r\n/", at);
      if (at >= text.size() || text[at] == '>') return;
      const std::size_t equals = text.find_first_of("=>", at);
      const std::size_t quote = text.find_first_of("\"'>", equals);
      if (quote >= text.size() || text[quote] == '>') return;
      const std::size_t end = text.find(text[quote], quote + 1);
      if (end >= text.size()) return;
      std::string_view name = text.substr(at, equals - at);
      name = name.substr(0, name.find_last_not_of(" \t\r\n") + 1);
      attributes_.emplace(name, text.substr(quote + 1, end - quote - 1));
      at = end + 1;
    }
  }

  std::string_view text(std::string_view name) const {
    const auto found = attributes_.find(name);
    return found == attributes_.end() ? std::string_view() : found->second;
  }
  bool has(std::string_view name) const { return attributes_.contains(name); }
  /// In user units; percentages and other units that need more context are taken as `otherwise`.
  double length(std::string_view name, double otherwise = 0) const {
    const std::string_view value = text(name);
    const std::vector<double> numbers = parse_svg_numbers(value);
    if (numbers.empty() || value.find('%') != std::string_view::npos) return otherwise;
    const std::size_t unit = value.find_first_not_of(" \t\r\n+-.0123456789");
    if (unit == std::string_view::npos) return numbers[0];
    static const std::map<std::string_view, double> kUnits = {
        {"px", 1}, {"pt", 96.0 / 72}, {"pc", 16}, {"in", 96}, {"cm", 96 / 2.54}, {"mm", 96 / 25.4}};
    const auto found = kUnits.find(value.substr(unit, 2));
    return found == kUnits.end() ? numbers[0] : numbers[0] * found->second;
  }
  /// What `clip-path`, alone or in `style`, names.
  std::string_view clip() const {
    std::string_view value = text("clip-path");
    const std::string_view style = text("style");
    const std::size_t in_style = style.find("clip-path");
    if (value.empty() && in_style != std::string_view::npos) {
      value = style.substr(in_style, style.find(';', in_style) - in_style);
    }
    const std::size_t begin = value.find("url(#");
    if (begin == std::string_view::npos) return {};
    return value.substr(begin + 5, value.find(')', begin) - begin - 5);
  }

 private:
  std::map<std::string_view, std::string_view> attributes_;
};

/// The bounding box of a shape in its own units; empty where it draws nothing.
SvgBox shape_box(std::string_view name, const Tag& tag) {
  SvgBox box;
  const auto add_around = [&](double x, double y, double rx, double ry) {
    box.add({x - rx, y - ry});
    box.add({x + rx, y + ry});
  };
  if (name == "path") {
    for (const SvgPoint& point : svg_path_points(tag.text("d"))) box.add(point);
  } else if (name == "polygon" || name == "polyline") {
    const std::vector<double> numbers = parse_svg_numbers(tag.text("points"));
    for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) box.add({numbers[i], numbers[i + 1]});
  } else if (name == "rect" || name == "image") {
    box.add({tag.length("x"), tag.length("y")});
    box.add({tag.length("x") + tag.length("width"), tag.length("y") + tag.length("height")});
  } else if (name == "circle") {
    add_around(tag.length("cx"), tag.length("cy"), tag.length("r"), tag.length("r"));
  } else if (name == "ellipse") {
    add_around(tag.length("cx"), tag.length("cy"), tag.length("rx"), tag.length("ry"));
  } else if (name == "line") {
    box.add({tag.length("x1"), tag.length("y1")});
    box.add({tag.length("x2"), tag.length("y2")});
  }
  return box;
}

bool holds_definitions(std::string_view name) {
  return name == "defs" || name == "clipPath" || name == "symbol" || name == "mask" || name == "pattern" ||
         name == "marker";
}

/// Walks the tags with a stack of what each open element means for what is in it.
class DrawingReader {
 public:
  DrawingReader(std::string_view document, NestingTokens tokens)
      : document_(document), tokens_(std::move(tokens)) {}

  absl::StatusOr<DrawingScene> run(const std::optional<DrawingBox>& view) && {
    walk([&](const Level& level, std::string_view name, const Tag& tag) { define(level, name, tag); });
    if (!problem_.empty()) return absl::InvalidArgumentError(problem_);
    if (view.has_value()) put(kBegin, *view, 0);
    drawing_ = true;
    walk([&](const Level& level, std::string_view name, const Tag& tag) { draw(level, name, tag); });
    if (view.has_value()) put(kEnd, *view, static_cast<std::int64_t>(document_.size()));
    if (!problem_.empty()) return absl::InvalidArgumentError(problem_);
    return std::move(scene_);
  }

 private:
  struct Level {
    SvgTransform transform;
    std::string_view clip_path;  // the id of the clipPath around, or empty
    std::int32_t kind = 0;
    bool defines = false;  // nothing in it is drawn
    int clips = 0;         // that end with the element
  };

  template <class Visit>
  void walk(const Visit& visit) {
    std::vector<Level> levels = {Level{}};
    for (std::size_t i = 0; i < tokens_.kinds.size() && problem_.empty(); ++i) {
      at_ = tokens_.offsets[i];
      const std::int32_t kind = tokens_.kinds[i];
      if (kind < 0) {
        if (levels.back().kind != -kind) {
          complain("this closes no open element; the tags of a drawing nest");
        } else {
          leave(levels.back());
          levels.pop_back();
        }
        continue;
      }
      Level level = levels.back();
      level.clips = 0;
      level.kind = kind;
      enter(i, level, visit);
      kind > 0 ? levels.push_back(level) : leave(level);
    }
    if (levels.size() > 1 && problem_.empty()) complain("the drawing ends within an element");
  }

  template <class Visit>
  void enter(std::size_t token, Level& level, const Visit& visit) {
    const auto begin = static_cast<std::size_t>(at_);
    const std::size_t end = token + 1 < tokens_.offsets.size()
                                ? static_cast<std::size_t>(tokens_.offsets[token + 1])
                                : document_.size();
    const Tag tag(document_.substr(begin, end - begin));
    const std::string_view name = tokens_.name(token);
    if (tag.has("transform"))
      level.transform = level.transform.after(parse_svg_transform(tag.text("transform")));
    if (name == "clipPath" && tag.text("clipPathUnits") != "objectBoundingBox")
      level.clip_path = tag.text("id");
    level.defines = level.defines || holds_definitions(name);
    if (drawing_ && !level.defines) begin_clips(level, name, tag);
    visit(level, name, tag);
  }

  void begin_clips(Level& level, std::string_view name, const Tag& tag) {
    const auto clip = [&](const SvgBox& box) {
      put(kBegin, boxed(level.transform.apply(box)), at_);
      ++level.clips;
    };
    if (const auto found = clip_paths_.find(tag.clip()); found != clip_paths_.end()) clip(found->second);
    if (name != "svg") return;
    const std::vector<double> window = parse_svg_numbers(tag.text("viewBox"));
    const bool outermost = !seen_svg_;
    seen_svg_ = true;
    SvgBox viewport;
    if (!outermost) viewport.add({tag.length("x"), tag.length("y")});
    if (outermost && window.size() == 4) {
      viewport.add({window[0], window[1]});
      viewport.add({window[0] + window[2], window[1] + window[3]});
    } else if (tag.length("width") > 0 && tag.length("height") > 0) {
      if (outermost) viewport.add({0, 0});
      viewport.add({viewport.x0 + tag.length("width"), viewport.y0 + tag.length("height")});
    }
    if (viewport.x1 > viewport.x0 && viewport.y1 > viewport.y0) clip(viewport);
    if (outermost || window.size() != 4 || !(window[2] > 0) || !(window[3] > 0)) {
      if (!outermost) level.transform = level.transform.after({1, 0, 0, 1, tag.length("x"), tag.length("y")});
      return;
    }
    const double scale =
        std::min(tag.length("width", window[2]) / window[2], tag.length("height", window[3]) / window[3]);
    level.transform = level.transform.after(
        {scale, 0, 0, scale, tag.length("x") - scale * window[0], tag.length("y") - scale * window[1]});
  }

  /// First, the boxes of clips. They are in the units of whatever they clip.
  void define(const Level& level, std::string_view name, const Tag& tag) {
    if (level.clip_path.empty()) return;
    SvgTransform own;
    if (tag.has("transform")) own = parse_svg_transform(tag.text("transform"));
    const SvgBox box = own.apply(shape_box(name, tag));
    SvgBox& clip = clip_paths_[level.clip_path];
    if (box.empty()) return;
    clip.add({box.x0, box.y0});
    clip.add({box.x1, box.y1});
  }

  void draw(const Level& level, std::string_view name, const Tag& tag) {
    if (level.defines) return;
    const SvgBox box = level.transform.apply(shape_box(name, tag));
    if (!box.empty()) put(kDraw, boxed(box), at_);
  }

  void leave(const Level& level) {
    for (int i = 0; i < level.clips; ++i) put(kEnd, {0, 0, 0, 0}, at_);
  }

  static DrawingBox boxed(const SvgBox& box) {
    return {static_cast<float>(box.x0), static_cast<float>(box.y0), static_cast<float>(box.x1),
            static_cast<float>(box.y1)};
  }

  void put(std::uint8_t element, const DrawingBox& box, std::int64_t offset) {
    for (const float side : box) {
      if (std::isnan(side)) complain("this element's geometry is no number");
    }
    scene_.elements.push_back(element);
    scene_.boxes.push_back(box);
    scene_.offsets.push_back(offset);
  }

  void complain(const char* what) { problem_ = absl::StrCat(line_and_column(document_, at_), ": ", what); }

  const std::string_view document_;
  const NestingTokens tokens_;
  std::int64_t at_ = 0;
  bool drawing_ = false;
  bool seen_svg_ = false;
  std::string problem_;
  std::map<std::string_view, SvgBox> clip_paths_;
  DrawingScene scene_;
};

}  // namespace

absl::StatusOr<DrawingScene> read_drawing(std::string_view document, const std::optional<DrawingBox>& view) {
  absl::StatusOr<NestingTokens> tokens = tokenize_xml(document);
  if (!tokens.ok()) return tokens.status();
  return DrawingReader(document, *std::move(tokens)).run(view);
}

}  // namespace cumulus::cli
