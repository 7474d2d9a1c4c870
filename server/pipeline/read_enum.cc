#include "server/pipeline/read_enum.h"

#include <google/protobuf/descriptor.h>

#include <cstddef>
#include <string>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

std::string name_of(const google::protobuf::EnumDescriptor& type, int value) {
  const google::protobuf::EnumValueDescriptor* found = type.FindValueByNumber(value);
  return found != nullptr && value != 0 ? found->name() : concat(value);
}

}  // namespace

absl::Status bad_enum(std::string_view field, const google::protobuf::EnumDescriptor& type, int value,
                      std::span<const int> right) {
  std::vector<std::string> names;
  for (const int choice : right) {
    if (choice != 0) names.push_back(name_of(type, choice));
  }
  std::string text = concat("is ", name_of(type, value), "; ");
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 < names.size() ? ", " : " or ";
    text += names[i];
  }
  return bad_field(field, text + " is right");
}

}  // namespace cumulus::server
