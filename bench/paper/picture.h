#pragma once

#include <array>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace cumulus::bench {

/// An SVG that is there when it goes out of scope.
class Picture {
 public:
  Picture(const std::string& path, int width, int height) : path_(path) {
    svg_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << width << ' ' << height
         << "\" font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"" << width << "\" height=\""
         << height << "\" fill=\"#fff\"/>\n"
         << std::fixed << std::setprecision(1);
  }
  void save() {
    svg_ << "</svg>\n";
    std::ofstream file(path_);
    file << svg_.str();
    if (!file) throw std::runtime_error("cannot write " + path_);
  }

  void box(double x, double y, double width, double height, const std::string& fill) {
    svg_ << "<rect x=\"" << x << "\" y=\"" << y << "\" width=\"" << width << "\" height=\"" << height
         << "\" fill=\"" << fill << "\"/>\n";
  }
  void text(double x, double y, const std::string& words) {
    svg_ << "<text x=\"" << x << "\" y=\"" << y << "\">" << words << "</text>\n";
  }
  void dots(const std::vector<std::array<double, 2>>& at, double size, const char* colour) {
    svg_ << "<path stroke=\"" << colour << "\" stroke-width=\"" << size << "\" stroke-linecap=\"round\" d=\"";
    for (const auto& [x, y] : at) svg_ << 'M' << x << ' ' << y << "h0";
    svg_ << "\"/>\n";
  }
  void line(const std::vector<std::array<double, 2>>& through, const char* colour, bool dashed) {
    svg_ << "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" << colour << '"'
         << (dashed ? " stroke-dasharray=\"6 4\"" : "") << " points=\"";
    for (const auto& [x, y] : through) svg_ << x << ',' << y << ' ';
    svg_ << "\"/>\n";
  }

 private:
  std::string path_;
  std::ostringstream svg_;
};

}  // namespace cumulus::bench
