#pragma once

#include <absl/status/status.h>

#include <string>
#include <vector>

// What a server refuses, told in the words of the command line. A server names a field of the request and
// says what is wrong with it; it knows nothing of options and files.

namespace cumulus::cli {

/// What a command calls a field of its request.
struct FieldName {
  std::string field;  // its path in the request, as field_violations() gives it
  std::string name;   // the option or the file that it came from
  std::string advice =
      "";  // what to change on the command line, where the server speaks of values by other names
};

/// `refusal` with the text "--gain: is 0; a finite number other than 0 is right (ADVICE)" where a field of
/// `fields` is wrong, and as it is where none is. An element keeps its number: "--feedback[1]: ...". A field
/// that is called as an option of the command needs no place in `fields`: Invocation::explain finds it.
absl::Status name_fields(const absl::Status& refusal, const std::vector<FieldName>& fields);

}  // namespace cumulus::cli
