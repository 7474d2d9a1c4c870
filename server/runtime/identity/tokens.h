#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/runtime/principal.h"

namespace cumulus::server {

using TokenHash = std::array<unsigned char, 32>;

/// SHA-256, and no slow hash: a token is 256 random bits, so that nobody finds it by trying, however fast;
/// and a slow hash for each call would be work that anybody can give the server with wrong tokens.
TokenHash hash_of_token(std::string_view token);

/// The tokens of a file, by their hashes: who can read the file cannot use it. A line for each,
///
///     NAME ROLE SHA256
///
/// with ROLE user, admin or metrics, and SHA256 in 64 hexadecimal digits. Empty lines, and what follows a #,
/// say nothing. No name has two lines, nor has a hash.
class Tokens {
 public:
  struct Holder {
    std::string name;
    Role role = Role::kUser;
  };

  /// INVALID_ARGUMENT naming `file` and the line.
  static absl::StatusOr<Tokens> parse(std::string_view text, std::string_view file);
  /// As parse, of the file at `path`; it is to be its owner's alone to write.
  static absl::StatusOr<Tokens> load(const std::string& path);

  /// Whose token it is. Takes the same time whichever it is, and however nearly it is one.
  std::optional<Holder> find(std::string_view token) const;
  /// The line of the file that has the token of `name`; 0: none.
  int line_of(std::string_view name) const;
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Holder holder;
    TokenHash hash;
    int line = 0;
  };
  std::vector<Entry> entries_;
};

/// Names that tokens may bear: 1 to 64 of letters, digits and ._@-, and not that of the local principal.
bool is_token_name(std::string_view name);
std::optional<Role> parse_role(std::string_view text);
std::string_view role_name(Role role);

struct NewToken {
  std::string token;  // what its holder is given; nothing else keeps it
  std::string line;   // for the file
};
/// Of 256 random bits.
NewToken make_token(std::string_view name, Role role);
/// Makes a token and adds its line to the file at `path`, which is made, for its owner alone, where there is
/// none. Returns the token. ALREADY_EXISTS where the file has one of that name.
absl::StatusOr<std::string> add_token(const std::string& path, std::string_view name, Role role);

}  // namespace cumulus::server
