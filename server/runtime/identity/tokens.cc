#include "server/runtime/identity/tokens.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "server/pipeline/text.h"
#include "server/runtime/descriptor.h"
#include "server/runtime/identity/small_file.h"

namespace cumulus::server {
namespace {

constexpr std::string_view kPrefix = "cumulus_";  // so that scanners of repositories know a leaked one
constexpr std::size_t kTokenBytes = 32;
constexpr std::pair<std::string_view, Role> kRoles[] = {
    {"user", Role::kUser}, {"admin", Role::kAdmin}, {"metrics", Role::kMetrics}};

std::string hexadecimal(const TokenHash& hash) {
  return absl::BytesToHexString({reinterpret_cast<const char*>(hash.data()), hash.size()});
}

std::optional<TokenHash> parse_hash(std::string_view text) {
  TokenHash hash{};
  if (text.size() != 2 * hash.size() ||
      !std::all_of(text.begin(), text.end(), [](unsigned char c) { return absl::ascii_isxdigit(c); }))
    return std::nullopt;
  const std::string bytes = absl::HexStringToBytes(to_absl_view(text));
  std::memcpy(hash.data(), bytes.data(), hash.size());
  return hash;
}

std::vector<std::string> words_of(absl::string_view line) {
  const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits('#', 1));
  return absl::StrSplit(parts.front(), absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
}

}  // namespace

bool is_token_name(std::string_view name) {
  constexpr std::size_t kMaxName = 64;
  return !name.empty() && name.size() <= kMaxName && name != kLocalPrincipal &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || std::strchr("._@-", c) != nullptr;
         });
}

std::optional<Role> parse_role(std::string_view text) {
  for (const auto& [name, role] : kRoles) {
    if (text == name) return role;
  }
  return std::nullopt;
}

std::string_view role_name(Role role) {
  for (const auto& [name, known] : kRoles) {
    if (role == known) return name;
  }
  return "";
}

TokenHash hash_of_token(std::string_view token) {
  TokenHash hash{};
  if (EVP_Digest(token.data(), token.size(), hash.data(), nullptr, EVP_sha256(), nullptr) != 1)
    throw std::runtime_error("OpenSSL computes no SHA-256");
  return hash;
}

absl::StatusOr<Tokens> Tokens::parse(std::string_view text, std::string_view file) {
  Tokens tokens;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(to_absl_view(text), '\n')) {
    ++number;
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    const auto wrong = [&](std::string_view what) {
      return absl::InvalidArgumentError(concat(
          file, ":", number, ": ", what, "; a line is NAME ROLE SHA256, as `cumulusd token` writes it"));
    };
    if (words.size() != 3) return wrong(concat("has ", words.size(), " words"));
    if (!is_token_name(words[0]))
      return wrong("its name is not 1 to 64 letters, digits and ._@- (nor may it be local)");
    const std::optional<Role> role = parse_role(words[1]);
    if (!role) return wrong(concat("'", words[1], "' is none of user, admin and metrics"));
    const std::optional<TokenHash> hash = parse_hash(words[2]);
    if (!hash) return wrong("its hash is not 64 hexadecimal digits");
    const int before = tokens.line_of(words[0]);
    if (before > 0)
      return wrong(
          concat("'", words[0], "' has a token already, of line ", before, "; take one of the two out"));
    for (const Entry& entry : tokens.entries_) {
      if (entry.hash == *hash)
        return wrong(concat("its hash is that of line ", entry.line, " too; take one out"));
    }
    tokens.entries_.push_back({{words[0], *role}, *hash, number});
  }
  return tokens;
}

absl::StatusOr<Tokens> Tokens::load(const std::string& path) {
  const absl::StatusOr<std::string> text = read_small_file(path, Writers::kOwner);
  if (!text.ok()) return text.status();
  return parse(*text, path);
}

std::optional<Tokens::Holder> Tokens::find(std::string_view token) const {
  const TokenHash hash = hash_of_token(token);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {  // all of them, and each to its end
    if (CRYPTO_memcmp(entry.hash.data(), hash.data(), hash.size()) == 0) found = &entry;
  }
  if (found == nullptr) return std::nullopt;
  return found->holder;
}

int Tokens::line_of(std::string_view name) const {
  for (const Entry& entry : entries_) {
    if (entry.holder.name == name) return entry.line;
  }
  return 0;
}

NewToken make_token(std::string_view name, Role role) {
  std::array<char, kTokenBytes> random{};
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    throw std::runtime_error("the kernel gives no random bytes");
  NewToken made;
  made.token = concat(kPrefix, absl::WebSafeBase64Escape({random.data(), random.size()}));
  made.line = concat(name, " ", role_name(role), " ", hexadecimal(hash_of_token(made.token)));
  return made;
}

absl::StatusOr<std::string> add_token(const std::string& path, std::string_view name, Role role) {
  const absl::StatusOr<std::string> there = read_small_file(path, Writers::kOwner);
  if (!there.ok() && !absl::IsNotFound(there.status())) return there.status();
  if (there.ok()) {
    const absl::StatusOr<Tokens> tokens = Tokens::parse(*there, path);
    if (!tokens.ok()) return tokens.status();
    if (const int line = tokens->line_of(name); line > 0) {
      return absl::AlreadyExistsError(concat(path, ":", line, ": has a token of '", name,
                                             "' already; take that line out first, or choose another name"));
    }
  }
  const bool in_midst_of_line = there.ok() && !there->empty() && there->back() != '\n';
  const NewToken made = make_token(name, role);
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const std::string line = concat(in_midst_of_line ? "\n" : "", made.line, "\n");
  // One write: a daemon that reads the file meanwhile sees the line whole or not at all.
  if (!file || ::write(file.number(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return absl::InvalidArgumentError(concat("cannot write '", path, "': ", std::strerror(errno)));
  return made.token;
}

}  // namespace cumulus::server
