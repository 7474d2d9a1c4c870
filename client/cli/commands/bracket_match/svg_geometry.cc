#include "cli/commands/bracket_match/svg_geometry.h"

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <string>

namespace cumulus::cli {
namespace {

constexpr double kRadians = 3.14159265358979323846 / 180;

/// Numbers of a text, one after another.
class NumberReader {
 public:
  explicit NumberReader(std::string_view text) : text_(text) {}

  /// False at the end, and where a letter comes before the next number.
  bool read(double& number) {
    while (!text_.empty() && !begins_number(text_.front())) {
      if (std::isalpha(static_cast<unsigned char>(text_.front())) != 0) return false;
      text_.remove_prefix(1);
    }
    if (text_.empty()) return false;
    const std::string rest(text_.substr(0, kMostDigits));
    char* end = nullptr;
    number = std::strtod(rest.c_str(), &end);
    text_.remove_prefix(end == rest.c_str() ? 1 : static_cast<std::size_t>(end - rest.c_str()));
    return true;
  }
  /// Flags of arcs may stand without anything between them.
  bool read_flag() {
    while (!text_.empty() && text_.front() != '0' && text_.front() != '1') text_.remove_prefix(1);
    if (text_.empty()) return false;
    text_.remove_prefix(1);
    return true;
  }
  /// The letter that stands next, or 0.
  char read_letter() {
    while (!text_.empty() && std::isalpha(static_cast<unsigned char>(text_.front())) == 0)
      text_.remove_prefix(1);
    if (text_.empty()) return 0;
    const char letter = text_.front();
    text_.remove_prefix(1);
    return letter;
  }

 private:
  static constexpr std::size_t kMostDigits = 64;
  static bool begins_number(char c) { return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.'; }

  std::string_view text_;
};

/// Follows a path's commands.
class PathReader {
 public:
  explicit PathReader(std::string_view path) : numbers_(path) {}

  std::vector<SvgPoint> run() && {
    for (char command = numbers_.read_letter(); command != 0; command = numbers_.read_letter()) {
      relative_ = std::islower(static_cast<unsigned char>(command)) != 0;
      read_all(static_cast<char>(std::toupper(static_cast<unsigned char>(command))));
    }
    return std::move(points_);
  }

 private:
  /// A command may repeat its numbers.
  void read_all(char command) {
    switch (command) {
      case 'M':
        if (read_points(1)) start_ = current_;
        while (read_points(1)) {
        }
        break;
      case 'L':
      case 'T':
        while (read_points(1)) {
        }
        break;
      case 'Q':
      case 'S':
        while (read_points(2)) {
        }
        break;
      case 'C':
        while (read_points(3)) {
        }
        break;
      case 'H':
        for (double x = 0; numbers_.read(x);) move_to({relative_ ? current_.x + x : x, current_.y});
        break;
      case 'V':
        for (double y = 0; numbers_.read(y);) move_to({current_.x, relative_ ? current_.y + y : y});
        break;
      case 'A':
        while (read_arc()) {
        }
        break;
      default:  // Z
        current_ = start_;
    }
  }

  bool read_point(SvgPoint& point) {
    if (!numbers_.read(point.x) || !numbers_.read(point.y)) return false;
    if (relative_) point = {point.x + current_.x, point.y + current_.y};
    return true;
  }

  /// Control points, and the one where the curve ends; all are relative to where it begins.
  bool read_points(int count) {
    std::vector<SvgPoint> read;
    for (SvgPoint point{}; count > 0 && read_point(point); --count) read.push_back(point);
    if (count > 0) return false;
    points_.insert(points_.end(), read.begin(), read.end());
    current_ = read.back();
    return true;
  }

  bool read_arc() {
    double rx = 0, ry = 0, rotation = 0;
    SvgPoint end{};
    if (!numbers_.read(rx) || !numbers_.read(ry) || !numbers_.read(rotation)) return false;
    if (!numbers_.read_flag() || !numbers_.read_flag() || !read_point(end)) return false;
    // Radii that are too small for the distance grow to half of it.
    const double distance = std::hypot(end.x - current_.x, end.y - current_.y);
    const double reach = 2 * std::max({std::abs(rx), std::abs(ry), distance / 2});
    points_.push_back({std::max(current_.x, end.x) - reach, std::max(current_.y, end.y) - reach});
    points_.push_back({std::min(current_.x, end.x) + reach, std::min(current_.y, end.y) + reach});
    move_to(end);
    return true;
  }

  void move_to(SvgPoint point) {
    current_ = point;
    points_.push_back(point);
  }

  NumberReader numbers_;
  bool relative_ = false;
  SvgPoint current_{};
  SvgPoint start_{};
  std::vector<SvgPoint> points_;
};

SvgTransform one_transform(std::string_view name, const std::vector<double>& n) {
  const auto number = [&](std::size_t i, double otherwise) { return i < n.size() ? n[i] : otherwise; };
  if (name == "matrix" && n.size() >= 6) return {n[0], n[1], n[2], n[3], n[4], n[5]};
  if (name == "translate") return {1, 0, 0, 1, number(0, 0), number(1, 0)};
  if (name == "scale") return {number(0, 1), 0, 0, number(1, number(0, 1)), 0, 0};
  if (name == "skewX") return {1, 0, std::tan(number(0, 0) * kRadians), 1, 0, 0};
  if (name == "skewY") return {1, std::tan(number(0, 0) * kRadians), 0, 1, 0, 0};
  if (name != "rotate") return {};
  const double cosine = std::cos(number(0, 0) * kRadians);
  const double sine = std::sin(number(0, 0) * kRadians);
  const SvgTransform there{1, 0, 0, 1, number(1, 0), number(2, 0)};
  const SvgTransform back{1, 0, 0, 1, -number(1, 0), -number(2, 0)};
  return there.after(SvgTransform{cosine, sine, -sine, cosine, 0, 0}.after(back));
}

}  // namespace

SvgTransform SvgTransform::after(const SvgTransform& inner) const {
  return {a * inner.a + c * inner.b, b * inner.a + d * inner.b,     a * inner.c + c * inner.d,
          b * inner.c + d * inner.d, a * inner.e + c * inner.f + e, b * inner.e + d * inner.f + f};
}

SvgBox SvgTransform::apply(const SvgBox& box) const {
  SvgBox moved;
  if (box.empty()) return moved;
  for (const double x : {box.x0, box.x1}) {
    for (const double y : {box.y0, box.y1}) moved.add(apply(SvgPoint{x, y}));
  }
  return moved;
}

SvgTransform parse_svg_transform(std::string_view text) {
  SvgTransform transform;
  while (true) {
    const std::size_t open = text.find('(');
    const std::size_t close = text.find(')', open == std::string_view::npos ? 0 : open);
    if (open == std::string_view::npos || close == std::string_view::npos) return transform;
    std::string_view name = text.substr(0, open);
    const std::size_t begin = name.find_first_of("mtsr");
    const std::size_t end = name.find_last_not_of(" \t\r\n");
    name = begin == std::string_view::npos ? std::string_view() : name.substr(begin, end - begin + 1);
    transform =
        transform.after(one_transform(name, parse_svg_numbers(text.substr(open + 1, close - open - 1))));
    text.remove_prefix(close + 1);
  }
}

std::vector<double> parse_svg_numbers(std::string_view text) {
  std::vector<double> numbers;
  NumberReader reader(text);
  for (double number = 0; reader.read(number);) numbers.push_back(number);
  return numbers;
}

std::vector<SvgPoint> svg_path_points(std::string_view path) { return PathReader(path).run(); }

}  // namespace cumulus::cli
