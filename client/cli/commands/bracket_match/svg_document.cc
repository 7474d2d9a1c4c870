#include "cli/commands/bracket_match/svg_document.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

#include "cli/commands/bracket_match/tokens.h"

namespace cumulus::cli {
namespace {

constexpr std::array<std::string_view, 8> kShapes = {"path",   "polygon", "polyline", "rect",
                                                     "circle", "ellipse", "line",     "image"};

absl::Status complaint(std::string_view text, std::int64_t offset, const char* what) {
  return absl::InvalidArgumentError(absl::StrCat(line_and_column(text, offset), ": ", what));
}

/// Behind the > of the tag that begins at `at`; quotes may hold another.
std::size_t after_tag(std::string_view text, std::size_t at) {
  for (; at < text.size() && text[at] != '>'; ++at) {
    if (text[at] == '"' || text[at] == '\'') at = std::min(text.find(text[at], at + 1), text.size() - 1);
  }
  return std::min(at + 1, text.size());
}

/// Characters of a text run, spaces in a row as one.
double count_characters(std::string_view text) {
  int count = 0;
  bool space = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0U) == 0x80U) continue;  // within a character of UTF-8
    const bool is_space = std::isspace(byte) != 0;
    if (byte == '&') i = std::min(text.find(';', i), text.size());  // &lt; and the like
    if (!is_space || !space) ++count;
    space = is_space;
  }
  return count - (space && count > 0 ? 1 : 0);
}

/// Lays the runs of a text out along its lines.
class TextLayout {
 public:
  TextLayout(const SvgDocument& document, double em) : document_(document), em_(em) {}

  SvgBox box(std::size_t text) {
    const std::vector<SvgElement>& elements = document_.elements;
    place(elements[text].tag, em_);
    std::int64_t from = elements[text].content;
    double em = em_;
    for (std::size_t part = text + 1; part < elements[text].end; ++part) {
      put_run(from, elements[part].offset, em);
      em = size_of(elements[part].tag, em_);
      place(elements[part].tag, em);
      put_run(elements[part].content, elements[part].close_offset, em);
      from = static_cast<std::int64_t>(
          after_tag(document_.text, static_cast<std::size_t>(elements[part].close_offset)));
      em = em_;
      part = elements[part].end - 1;
    }
    put_run(from, elements[text].close_offset, em);
    return box_;
  }

 private:
  static double size_of(const SvgTag& tag, double em) {
    return svg_length(tag.property("font-size"), em, em);
  }

  void place(const SvgTag& tag, double em) {
    if (tag.has("x")) at_.x = svg_length(tag.text("x"), em, 0);
    if (tag.has("y")) at_.y = svg_length(tag.text("y"), em, 0);
    at_.x += svg_length(tag.text("dx"), em, 0);
    at_.y += svg_length(tag.text("dy"), em, 0);
    if (!tag.property("text-anchor").empty()) anchor_ = tag.property("text-anchor");
    length_ = svg_length(tag.text("textLength"), em, 0);
  }

  void put_run(std::int64_t from, std::int64_t to, double em) {
    constexpr double kAdvance = 0.6;
    constexpr double kAscent = 0.8;
    constexpr double kDescent = 0.2;
    if (to <= from) return;
    std::string_view run =
        document_.text.substr(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from));
    run = run.substr(0, run.find('<'));  // what is deeper is not told apart
    const double count = count_characters(run);
    if (count == 0) return;
    const double width = length_ > 0 ? std::exchange(length_, 0) : count * kAdvance * em;
    const double left = at_.x - (anchor_ == "middle" ? width / 2 : anchor_ == "end" ? width : 0);
    box_.add({left, at_.y - kAscent * em});
    box_.add({left + width, at_.y + kDescent * em});
    at_.x += anchor_ == "middle" || anchor_ == "end" ? 0 : width;
  }

  const SvgDocument& document_;
  const double em_;
  SvgPoint at_{0, 0};
  double length_ = 0;  // that the next run is said to have
  std::string_view anchor_;
  SvgBox box_;
};

}  // namespace

SvgTag::SvgTag(std::string_view text) {
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

std::string_view SvgTag::text(std::string_view name) const {
  const auto found = attributes_.find(name);
  return found == attributes_.end() ? std::string_view() : found->second;
}

double SvgTag::length(std::string_view name, double otherwise) const {
  constexpr double kEm = 16;  // where no font is known
  return svg_length(text(name), kEm, otherwise);
}

std::string_view SvgTag::property(std::string_view name) const {
  const std::string_view style = text("style");
  for (std::size_t at = style.find(name); at != std::string_view::npos; at = style.find(name, at + 1)) {
    const bool begins = at == 0 || style.find_last_of(";", at) == style.find_last_not_of(" \t\r\n", at - 1);
    const std::size_t colon = style.find_first_not_of(" \t\r\n", at + name.size());
    if (!begins || colon >= style.size() || style[colon] != ':') continue;
    const std::string_view value = style.substr(colon + 1, style.find(';', colon) - colon - 1);
    const std::size_t first = value.find_first_not_of(" \t\r\n");
    return first == std::string_view::npos ? std::string_view() : value.substr(first);
  }
  return text(name);
}

std::string_view SvgTag::reference(std::string_view property_name) const {
  const std::string_view value = property(property_name);
  const std::size_t begin = value.find('#');
  if (value.substr(0, 4) != "url(" || begin == std::string_view::npos) return {};
  return value.substr(begin + 1, value.find_first_of("\"')", begin) - begin - 1);
}

std::string_view SvgTag::href() const {
  const std::string_view value = has("href") ? text("href") : text("xlink:href");
  return value.empty() || value.front() != '#' ? std::string_view() : value.substr(1);
}

std::size_t SvgDocument::find(std::string_view id) const {
  const auto found = by_id.find(id);
  return id.empty() || found == by_id.end() ? elements.size() : found->second;
}

absl::StatusOr<SvgDocument> parse_svg_document(std::string_view text) {
  const absl::StatusOr<NestingTokens> tokens = tokenize_xml(text);
  if (!tokens.ok()) return tokens.status();
  SvgDocument document;
  document.text = text;
  std::vector<std::pair<std::size_t, std::int32_t>> open;  // elements with their kinds
  for (std::size_t i = 0; i < tokens->kinds.size(); ++i) {
    const std::int32_t kind = tokens->kinds[i];
    const std::int64_t offset = tokens->offsets[i];
    if (kind < 0) {
      if (open.empty() || open.back().second != -kind)
        return complaint(text, offset, "this closes no open element; the tags of a drawing nest");
      SvgElement& element = document.elements[open.back().first];
      element.close_offset = offset;
      element.end = document.elements.size();
      open.pop_back();
      continue;
    }
    const std::size_t begin = static_cast<std::size_t>(offset);
    const std::size_t next =
        i + 1 < tokens->offsets.size() ? static_cast<std::size_t>(tokens->offsets[i + 1]) : text.size();
    const std::string& name = tokens->name(i);
    SvgElement element{text.substr(begin + 1, name.size()),
                       SvgTag(text.substr(begin, next - begin)),
                       offset,
                       offset,
                       offset,
                       0};
    const std::size_t index = document.elements.size();
    element.content = static_cast<std::int64_t>(after_tag(text, begin));
    element.end = index + 1;
    if (const std::string_view id = element.tag.text("id"); !id.empty()) document.by_id.emplace(id, index);
    document.elements.push_back(std::move(element));
    if (kind > 0) open.emplace_back(index, kind);
  }
  if (!open.empty())
    return complaint(text, static_cast<std::int64_t>(text.size()), "the drawing ends within an element");
  return document;
}

bool is_svg_shape(std::string_view name) {
  return std::find(kShapes.begin(), kShapes.end(), name) != kShapes.end();
}

SvgBox svg_shape_box(const SvgElement& element) {
  const SvgTag& tag = element.tag;
  const std::string_view name = element.name;
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

double svg_length(std::string_view value, double em, double otherwise) {
  const std::vector<double> numbers = parse_svg_numbers(value);
  if (numbers.empty() || value.find('%') != std::string_view::npos) return otherwise;
  const std::size_t unit = value.find_first_not_of(" \t\r\n+-.0123456789");
  if (unit == std::string_view::npos) return numbers[0];
  static const std::map<std::string_view, double> kUnits = {{"px", 1},  {"pt", 96.0 / 72}, {"pc", 16},
                                                            {"in", 96}, {"cm", 96 / 2.54}, {"mm", 96 / 25.4}};
  if (value.substr(unit, 2) == "em") return numbers[0] * em;
  const auto found = kUnits.find(value.substr(unit, 2));
  return found == kUnits.end() ? numbers[0] : numbers[0] * found->second;
}

SvgBox svg_text_box(const SvgDocument& document, std::size_t element, double em) {
  return TextLayout(document, em).box(element);
}

}  // namespace cumulus::cli
