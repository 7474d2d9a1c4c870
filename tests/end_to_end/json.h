#pragma once

#include <memory>
#include <string>

namespace google::protobuf {
class Value;
}

namespace cumulus::testing {

/// A parsed JSON object. A path names a value: keys, and indices of lists, separated by dots. A text that
/// is no JSON object, or a value that is not there or of another kind, fails the test.
class Json {
 public:
  explicit Json(const std::string& text);
  Json(const Json&) = delete;
  Json& operator=(const Json&) = delete;
  ~Json();

  std::string text(const std::string& path) const;
  double number(const std::string& path) const;
  bool flag(const std::string& path) const;

 private:
  const google::protobuf::Value& at(const std::string& path) const;

  std::unique_ptr<google::protobuf::Value> root_;
};

}  // namespace cumulus::testing
