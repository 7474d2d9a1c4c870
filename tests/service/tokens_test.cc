#include "server/runtime/identity/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/temporary_folder.h"

namespace cumulus::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string complaint(const std::string& text) {
  return std::string(Tokens::parse(text, "tokens").status().message());
}

TEST(Tokens, AHashIsThatOfSha256) {
  const TokenHash hash = hash_of_token("abc");  // FIPS 180-2, appendix B.1
  EXPECT_EQ(hash[0], 0xba);
  EXPECT_EQ(hash[31], 0xad);
}

TEST(Tokens, FindsTheHolderOfATokenThatItMade) {
  const NewToken alice = make_token("alice", Role::kUser);
  const NewToken bob = make_token("bob", Role::kAdmin);
  EXPECT_NE(alice.token, make_token("alice", Role::kUser).token) << "each is made anew";
  EXPECT_THAT(alice.line, Not(HasSubstr(alice.token)));
  const auto tokens =
      Tokens::parse("# who may come\n\n" + alice.line + "  # since May\r\n" + bob.line, "tokens");
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->size(), 2U);
  EXPECT_EQ(tokens->find(alice.token)->name, "alice");
  EXPECT_EQ(tokens->find(alice.token)->role, Role::kUser);
  EXPECT_EQ(tokens->find(bob.token)->role, Role::kAdmin);
  EXPECT_FALSE(tokens->find(alice.token + "x").has_value());
  EXPECT_FALSE(tokens->find("").has_value());
  EXPECT_FALSE(tokens->find(alice.line).has_value()) << "who reads the file cannot use it";
}

TEST(Tokens, ALineThatIsWrongIsNamedWithTheCure) {
  const std::string hash(64, 'a');
  EXPECT_THAT(complaint("\nalice user"), HasSubstr("tokens:2: has 2 words; a line is NAME ROLE SHA256"));
  EXPECT_THAT(complaint("alice king " + hash), HasSubstr("'king' is none of user, admin and metrics"));
  EXPECT_THAT(complaint("alice user " + hash.substr(1)), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(complaint("alice user " + hash.substr(1) + "g"), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(complaint("al/ice user " + hash), HasSubstr("1 to 64 letters"));
  EXPECT_THAT(complaint("local admin " + hash), HasSubstr("nor may it be local"));
}

TEST(Tokens, ANameHasOneLine) {
  const std::string alice = make_token("alice", Role::kUser).line;
  EXPECT_THAT(complaint("# ours\n" + alice + "\n\n" + make_token("alice", Role::kAdmin).line),
              HasSubstr("tokens:4: 'alice' has a token already, of line 2; take one of the two out"));
  EXPECT_THAT(complaint(alice + "\nbob" + alice.substr(alice.find(' '))),
              HasSubstr("tokens:2: its hash is that of line 1 too"));
}

TEST(Tokens, ASecondOfANameIsNotMade) {
  const testing::TemporaryFolder folder;
  const std::string path = folder / "tokens";
  ASSERT_TRUE(add_token(path, "bob", Role::kUser).ok());
  ASSERT_TRUE(add_token(path, "alice", Role::kUser).ok());
  const std::string before = read(path);
  const absl::Status again = add_token(path, "alice", Role::kAdmin).status();
  EXPECT_EQ(again.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(again.message()), HasSubstr(path + ":2: has a token of 'alice' already"));
  EXPECT_EQ(read(path), before);
}

TEST(Tokens, ALineWithoutItsEndIsNotAddedTo) {
  const testing::TemporaryFolder folder;
  const std::string path = folder / "tokens";
  std::ofstream(path) << make_token("alice", Role::kUser).line;  // as editors leave it
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  const auto bob = add_token(path, "bob", Role::kUser);
  ASSERT_TRUE(bob.ok()) << bob.status();
  const auto tokens = Tokens::load(path);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->size(), 2U);
  EXPECT_EQ(tokens->find(*bob)->name, "bob");
}

TEST(Tokens, AreAddedToAFileOfTheirOwnersAlone) {
  const testing::TemporaryFolder folder;
  const std::string path = folder / "tokens";
  const auto alice = add_token(path, "alice", Role::kUser);
  const auto scraper = add_token(path, "prometheus", Role::kMetrics);
  ASSERT_TRUE(alice.ok() && scraper.ok()) << alice.status();
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  EXPECT_THAT(read(path), Not(HasSubstr(*alice)));
  const auto tokens = Tokens::load(path);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(tokens->find(*alice)->name, "alice");
  EXPECT_EQ(tokens->find(*scraper)->role, Role::kMetrics);
}

TEST(Tokens, AFileThatOthersMayWriteIsRefused) {
  const testing::TemporaryFolder folder;
  const std::string path = folder / "tokens";
  ASSERT_TRUE(add_token(path, "alice", Role::kUser).ok());
  ASSERT_EQ(::chmod(path.c_str(), 0620), 0);
  EXPECT_THAT(std::string(Tokens::load(path).status().message()), HasSubstr("chmod go-w"));
  EXPECT_EQ(Tokens::load(folder / "none").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Tokens::load(folder.path()).status().message()), HasSubstr("is no file"));
}

}  // namespace
}  // namespace cumulus::server
