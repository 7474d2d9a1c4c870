#pragma once

#include <cmath>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace cumulus::testing {

using MetricLabels = std::map<std::string, std::string>;

/// Prometheus's text format, read strictly: whatever a scraper or promtool could object to is an exception
/// that names the line. Each family has its HELP and TYPE first, and all of its samples together; counters
/// end in _total; buckets rise to their count.
class PrometheusText {
 public:
  explicit PrometheusText(const std::string& text) {
    if (text.empty() || text.back() != '\n') throw std::runtime_error("the last line does not end");
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      try {
        read(line);
      } catch (const std::exception& problem) {
        throw std::runtime_error(line + ": " + problem.what());
      }
    }
    for (const auto& [family, type] : types_) {
      if (type == "histogram") check_histogram(family);
      if (type == "counter" && !family.ends_with("_total"))
        throw std::runtime_error(family + ": a counter without _total");
    }
  }

  /// Nothing where there is no such sample.
  std::optional<double> find(const std::string& name, const MetricLabels& labels = {}) const {
    const auto found = samples_.find({name, labels});
    return found != samples_.end() ? std::optional(found->second) : std::nullopt;
  }
  double value(const std::string& name, const MetricLabels& labels = {}) const {
    return find(name, labels).value_or(std::nan(""));
  }
  bool has_family(const std::string& name) const { return types_.count(name) > 0; }
  std::set<std::string> families() const {
    std::set<std::string> names;
    for (const auto& [name, type] : types_) names.insert(name);
    return names;
  }
  /// Of all samples of `name`, those of `label`.
  std::set<std::string> values_of(const std::string& name, const std::string& label) const {
    std::set<std::string> values;
    for (const auto& [key, value] : samples_) {
      const auto found = key.second.find(label);
      if (key.first == name && found != key.second.end()) values.insert(found->second);
    }
    return values;
  }
  std::size_t size() const { return samples_.size(); }

 private:
  void read(const std::string& line) {
    static const std::regex comment("# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)");
    static const std::regex sample(
        "([a-zA-Z_:][a-zA-Z0-9_:]*)"
        "(?:\\{((?:[a-zA-Z_][a-zA-Z0-9_]*=\"(?:[^\"\\\\]|\\\\[\\\\\"n])*\",?)*)\\})? "
        "([+-]?(?:[0-9.]+(?:[eE][+-]?[0-9]+)?|Inf)|NaN)");
    std::smatch parts;
    if (std::regex_match(line, parts, comment)) {
      read_comment(parts[1], parts[2], parts[3]);
    } else if (std::regex_match(line, parts, sample)) {
      read_sample(parts[1], parts[2], parts[3]);
    } else {
      throw std::runtime_error("is no line of the format");
    }
  }
  void read_comment(const std::string& kind, const std::string& name, const std::string& text) {
    if (kind == "HELP") {
      if (text.empty()) throw std::runtime_error("helps nobody");
      if (!helped_.insert(name).second) throw std::runtime_error("the family comes twice");
      return;
    }
    if (helped_.count(name) == 0) throw std::runtime_error("TYPE before HELP");
    if (text != "counter" && text != "gauge" && text != "histogram") throw std::runtime_error("unknown type");
    if (!types_.emplace(name, text).second) throw std::runtime_error("the type comes twice");
    family_ = name;
  }
  void read_sample(const std::string& name, const std::string& label_text, const std::string& value) {
    const bool of_histogram =
        !family_.empty() && types_[family_] == "histogram" &&
        (name == family_ + "_bucket" || name == family_ + "_sum" || name == family_ + "_count");
    if (!of_histogram && (name != family_ || types_[family_] == "histogram"))
      throw std::runtime_error("is no sample of " + family_);
    static const std::regex label("([a-zA-Z_][a-zA-Z0-9_]*)=\"((?:[^\"\\\\]|\\\\.)*)\"");
    MetricLabels labels;
    for (std::sregex_iterator each(label_text.begin(), label_text.end(), label), end; each != end; ++each) {
      if (!labels.emplace((*each)[1], (*each)[2]).second) throw std::runtime_error("a label twice");
    }
    if (!samples_.emplace(std::pair(name, labels), number(value)).second)
      throw std::runtime_error("comes twice");
  }
  static double number(const std::string& text) {
    if (text == "+Inf" || text == "Inf") return INFINITY;
    return text == "NaN" ? std::nan("") : std::stod(text);
  }
  void check_histogram(const std::string& family) const {
    std::map<MetricLabels, std::map<double, double>> buckets;
    for (const auto& [key, value] : samples_) {
      if (key.first != family + "_bucket") continue;
      MetricLabels labels = key.second;
      const double end = number(labels.at("le"));
      labels.erase("le");
      buckets[labels][end] = value;
    }
    for (const auto& [labels, steps] : buckets) {
      double before = 0;
      for (const auto& [end, count] : steps) {
        if (count < before) throw std::runtime_error(family + ": buckets fall");
        before = count;
      }
      if (steps.count(INFINITY) == 0 || find(family + "_count", labels) != steps.at(INFINITY))
        throw std::runtime_error(family + ": the last bucket is not the count");
      if (!find(family + "_sum", labels)) throw std::runtime_error(family + ": no sum");
    }
  }

  std::map<std::pair<std::string, MetricLabels>, double> samples_;
  std::map<std::string, std::string> types_;
  std::set<std::string> helped_;
  std::string family_;
};

}  // namespace cumulus::testing
