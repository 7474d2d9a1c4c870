#include "server/runtime/identity/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/runtime/identity/access.h"
#include "server/runtime/identity/reloader.h"
#include "tests/support/secure_server.h"
#include "tests/support/test_server.h"

namespace cumulus::testing {
namespace {

using ::testing::HasSubstr;

/// The certificate that a server shows, in PEM, as the client of a fresh connection sees it.
class Witness {
 public:
  explicit Witness(const SecureServer& server) : server_(server) {
    token_ = const_cast<SecureServer&>(server).add_token("witness", server::Role::kUser);
  }
  std::string shown() const {
    const auto channel = server_.channel();
    grpc::ClientContext context;
    Caller(channel, token_).prepare(context);
    v1::Capabilities answer;
    if (!v1::Server::NewStub(channel)->GetCapabilities(&context, {}, &answer).ok()) return "none";
    const auto names = context.auth_context()->FindPropertyValues("x509_common_name");
    return names.empty() ? "none" : std::string(names.front().data(), names.front().size());
  }
  const std::string& token() const { return token_; }

 private:
  const SecureServer& server_;
  std::string token_;
};

TEST(Certificates, AreReadAnewAndConnectionsStay) {
  SecureServer server;
  server.start(server.settings());
  const Witness witness(server);
  const Caller old(server.channel(), witness.token());
  ASSERT_TRUE(old.capabilities().ok());
  EXPECT_EQ(witness.shown(), "server-1");
  server.write_pair(TestCertificate("server-2", "DNS:localhost", &server.authority()));
  ASSERT_TRUE(server.certificates->reload().ok());
  EXPECT_TRUE(eventually([&] { return witness.shown() == "server-2"; }));
  EXPECT_EQ(old.channel()->GetState(false), GRPC_CHANNEL_READY) << "the old connection was not touched";
  EXPECT_TRUE(old.capabilities().ok());
}

TEST(Certificates, APairThatDoesNotMatchIsNotUsed) {
  SecureServer server;
  server.start(server.settings());
  const Witness witness(server);
  const TestCertificate second("server-2", "DNS:localhost", &server.authority());
  write_text(server.folder() / "server.pem", second.certificate());  // and the key is the old one
  const absl::Status half = server.certificates->reload();
  EXPECT_EQ(half.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(half.message()), HasSubstr("is not the key of the certificate"));
  EXPECT_EQ(witness.shown(), "server-1");
  write_text(server.folder() / "server.key", second.key());
  EXPECT_TRUE(server.certificates->reload().ok());
  EXPECT_TRUE(eventually([&] { return witness.shown() == "server-2"; }));
}

TEST(Certificates, NoHandshakeFailsWhileTheyChange) {
  SecureServer server;
  server.start(server.settings());
  const Witness witness(server);
  for (int round = 0; round < 8; ++round) {
    server.write_pair(TestCertificate(round % 2 == 0 ? "even" : "odd", "DNS:localhost", &server.authority()));
    ASSERT_TRUE(server.certificates->reload().ok());
    for (int i = 0; i < 8; ++i) ASSERT_NE(witness.shown(), "none") << "round " << round;
  }
}

TEST(Certificates, ANewAuthorityOfClientsIsTaken) {
  SecureServer server;
  server.start(server.settings());
  const TestCertificate authority("Next authority");
  const TestCertificate client("x", "DNS:render-7", &authority);
  EXPECT_FALSE(Caller(server.channel(&client)).capabilities().ok());
  write_text(server.folder() / "ca.pem", server.authority().certificate() + authority.certificate());
  ASSERT_TRUE(server.certificates->reload().ok());
  EXPECT_TRUE(eventually([&] { return Caller(server.channel(&client)).capabilities().ok(); }));
}

TEST(Certificates, SayWhenTheFirstOfThoseThatAreShownEnds) {
  const TemporaryFolder folder;
  const TestCertificate authority("authority");
  const TestCertificate early("server", "DNS:localhost", &authority, 1);
  const TestCertificate late("server", "DNS:localhost", &authority, 2);
  const auto write = [&](const TestCertificate& pair, const std::string& more) {
    write_text(folder / "pem", pair.certificate() + more);
    write_text(folder / "key", pair.key());
  };
  constexpr double kDay = 24 * 3600;
  const auto in = [](absl::Time time) { return absl::ToDoubleSeconds(time - absl::Now()); };
  write(late, "");
  const auto pair = server::Certificates::load({folder / "pem", folder / "key", ""});
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_NEAR(in((*pair)->expiry()), 2 * kDay, 60);
  write(late, early.certificate());
  ASSERT_TRUE((*pair)->reload().ok());
  EXPECT_NEAR(in((*pair)->expiry()), kDay, 60);
  write_text(folder / "pem", "nonsense");
  EXPECT_FALSE((*pair)->reload().ok());
  EXPECT_NEAR(in((*pair)->expiry()), kDay, 60) << "of what is still shown";
}

TEST(Certificates, WhatIsWrongWithAFileIsSaid) {
  const TemporaryFolder folder;
  const TestCertificate authority("authority");
  const TestCertificate good("server", "DNS:localhost", &authority);
  const TestCertificate old("server", "DNS:localhost", &authority, -1);
  write_text(folder / "good.pem", good.certificate());
  write_text(folder / "good.key", good.key());
  write_text(folder / "old.pem", old.certificate());
  write_text(folder / "old.key", old.key());
  write_text(folder / "nonsense", "nonsense");
  const auto complaint = [&](const std::string& pem, const std::string& key, const std::string& ca = "") {
    const auto loaded =
        server::Certificates::load({folder / pem, folder / key, ca.empty() ? "" : folder / ca});
    return std::string(loaded.status().message());
  };
  EXPECT_EQ(complaint("good.pem", "good.key", "good.pem"), "");
  EXPECT_THAT(complaint("none.pem", "good.key"), HasSubstr("cannot read '" + (folder / "none.pem")));
  EXPECT_THAT(complaint("nonsense", "good.key"), HasSubstr("holds no certificate in PEM"));
  EXPECT_THAT(complaint("good.pem", "nonsense"), HasSubstr("holds no key in PEM"));
  EXPECT_THAT(complaint("good.pem", "old.key"), HasSubstr("is not the key of the certificate"));
  EXPECT_THAT(complaint("old.pem", "old.key"), HasSubstr("has expired"));
  EXPECT_THAT(complaint("good.pem", "good.key", "nonsense"), HasSubstr("holds no certificate in PEM"));
  ASSERT_EQ(::chmod((folder / "good.key").c_str(), 0666), 0);
  EXPECT_THAT(complaint("good.pem", "good.key"), HasSubstr("can be written by others"));
}

TEST(Certificates, TheWatchdogHearsAServerOfTls) {
  SecureServer server;
  server.start(server.settings());
  const auto address = server::parse_listen_address(server.address()).value();
  EXPECT_TRUE(server::answers(address, absl::Seconds(5), true));
}

TEST(Reloader, ReadsAFileThatHasChangedAndNoOther) {
  const TemporaryFolder folder;
  write_text(folder / "a", "1");
  write_text(folder / "b", "1");
  std::atomic<int> a = 0;
  std::atomic<int> b = 0;
  const auto count = [](std::atomic<int>& reads) {
    return [&reads] {
      ++reads;
      return absl::OkStatus();
    };
  };
  server::Reloader reloader({{"a", server::WatchedFiles({folder / "a", ""}), count(a)},
                             {"b", server::WatchedFiles({folder / "b"}), count(b)}},
                            absl::Milliseconds(5));
  write_text(folder / "b", "22");
  EXPECT_TRUE(eventually([&] { return b == 1; }));
  EXPECT_EQ(a, 0);
  reloader.reload_all();
  EXPECT_EQ(a, 1);
  EXPECT_EQ(b, 2);
}

TEST(Reloader, SaysWhichFilesCannotBeUsed) {
  SecureServer files;  // which is not started
  const absl::StatusOr<server::Access> access = server::Access::load(files.settings());
  ASSERT_TRUE(access.ok()) << access.status();
  server::Reloader reloader(access->reloadable, absl::Hours(1));
  using Usable = std::vector<std::pair<std::string, bool>>;
  EXPECT_EQ(reloader.usable(), (Usable{{"tokens", true}, {"certificates", true}}));
  write_text(files.folder() / "server.pem", "nonsense");
  reloader.reload_all();
  EXPECT_EQ(reloader.usable(), (Usable{{"tokens", true}, {"certificates", false}}));
  files.write_pair(TestCertificate("server-2", "DNS:localhost", &files.authority()));
  reloader.reload_all();
  EXPECT_EQ(reloader.usable(), (Usable{{"tokens", true}, {"certificates", true}}));
}

TEST(Reloader, NoticesWhatHasChangedBetweenTheFirstReadingAndItsStart) {
  SecureServer files;  // which is not started
  const absl::StatusOr<server::Access> access = server::Access::load(files.settings());
  ASSERT_TRUE(access.ok()) << access.status();
  const std::string token = files.add_token("alice", server::Role::kUser);
  const server::Reloader reloader(access->reloadable, absl::Milliseconds(5));
  EXPECT_TRUE(eventually(
      [&] { return access->identity->resolve_header("Bearer " + token, "ipv4:127.0.0.1:1").ok(); }));
}

}  // namespace
}  // namespace cumulus::testing
