// A program in C against the real daemon, by libcumulus.so.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "cumulus/sampling.h"
#include "cumulus/table_file.h"
#include "tests/end_to_end/program.h"
#include "tests/support/certificates.h"

namespace cumulus::testing {
namespace {

TEST(CLibrary, ServesAProgramInC) {
  Daemon daemon;
  const TemporaryFolder folder;
  const Ended ended = Program(CUMULUS_C_CALLS, {daemon.address(), folder.path().string()}).wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
  const sampling::OpenedTable sky = sampling::open_table((folder.path() / "sky.cst").c_str());
  ASSERT_TRUE(sky) << sky.what();
  EXPECT_EQ(sky.view.header.width, 4u);
  const sampling::Sample drawn = sampling::sample(sky.view, 0x12345678u, 0x9ABCDEF0u);
  EXPECT_GT(drawn.pdf, 0.0F);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "sky.cst.partial"));
}

TEST(CLibrary, ConnectsByCertificateAndToken) {
  const TemporaryFolder folder;
  const TestCertificate authority("Cumulus test authority");
  const TestCertificate server("server", "IP:127.0.0.1", &authority);
  write_text(folder / "ca.pem", authority.certificate());
  write_text(folder / "server.pem", server.certificate());
  write_text(folder / "server.key", server.key());
  const Ended token = Program(test_program("cumulusd"),
                              {"token", "alice", "--role", "user", "--token-file", folder / "tokens"})
                          .wait();
  ASSERT_EQ(token.exit_code, 0) << token.errors;
  write_text(folder / "alice.token", token.output);
  Daemon daemon({"--tls-cert", folder / "server.pem", "--tls-key", folder / "server.key", "--token-file",
                 folder / "tokens"});
  const std::vector<std::string> no_token = {daemon.address(), folder.path().string(), folder / "ca.pem",
                                             folder / "server.pem"};
  const Ended refused = Program(CUMULUS_C_CALLS, no_token).wait();
  EXPECT_EQ(refused.exit_code, 1);
  const std::vector<std::string> known = {daemon.address(), folder.path().string(), folder / "ca.pem",
                                          folder / "alice.token"};
  const Ended ended = Program(CUMULUS_C_CALLS, known).wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
}

}  // namespace
}  // namespace cumulus::testing
