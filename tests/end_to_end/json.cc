#include "tests/end_to_end/json.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <sstream>

namespace cumulus::testing {

using google::protobuf::Value;

Json::Json(const std::string& text) : root_(std::make_unique<Value>()) {
  const auto status = google::protobuf::util::JsonStringToMessage(text, root_->mutable_struct_value());
  EXPECT_TRUE(status.ok()) << status.ToString() << ": " << text;
}

Json::~Json() = default;

const Value& Json::at(const std::string& path) const {
  const Value* value = root_.get();
  std::istringstream keys(path);
  std::string key;
  while (std::getline(keys, key, '.')) {
    const bool is_index = key.find_first_not_of("0123456789") == std::string::npos;
    if (is_index && std::stoi(key) < value->list_value().values_size()) {
      value = &value->list_value().values(std::stoi(key));
    } else if (!is_index && value->struct_value().fields().contains(key)) {
      value = &value->struct_value().fields().at(key);
    } else {
      ADD_FAILURE() << "no value " << path << " in " << root_->ShortDebugString();
      return Value::default_instance();
    }
  }
  return *value;
}

std::string Json::text(const std::string& path) const {
  EXPECT_EQ(at(path).kind_case(), Value::kStringValue) << path;
  return at(path).string_value();
}

double Json::number(const std::string& path) const {
  EXPECT_EQ(at(path).kind_case(), Value::kNumberValue) << path;
  return at(path).number_value();
}

bool Json::flag(const std::string& path) const {
  EXPECT_EQ(at(path).kind_case(), Value::kBoolValue) << path;
  return at(path).bool_value();
}

}  // namespace cumulus::testing
