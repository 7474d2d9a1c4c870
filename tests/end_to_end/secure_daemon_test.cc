// cumulusd with certificates and tokens, and the command line that comes to it with arguments, the
// environment and a configuration file.
#include <absl/strings/escaping.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "tests/end_to_end/program.h"
#include "tests/support/certificates.h"
#include "tests/support/eventually.h"
#include "tests/support/http_client.h"

namespace cumulus::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SecureDaemon : public ::testing::Test {
 protected:
  SecureDaemon() : authority_("Cumulus test authority") {
    write_pair("server-1");
    const TestCertificate client("x", "DNS:render-7", &authority_);
    write_text(folder_ / "ca.pem", authority_.certificate());
    write_text(folder_ / "client.pem", client.certificate());
    write_text(folder_ / "client.key", client.key());
    token_ = folder_ / "alice.token";
    write_text(token_, make_token("alice", "user"));
    daemon_ = std::make_unique<Daemon>(std::vector<std::string>{
        "--tls-cert", folder_ / "server.pem", "--tls-key", folder_ / "server.key", "--tls-client-ca",
        folder_ / "ca.pem", "--token-file", folder_ / "tokens", "--lame-duck", "0", "--metrics-address",
        "127.0.0.1:0", "--status-address", "127.0.0.1:0"});
  }

  void write_pair(const std::string& name) {
    const TestCertificate server(name, "IP:127.0.0.1", &authority_);
    write_text(folder_ / "server.pem", server.certificate());
    write_text(folder_ / "server.key", server.key());
  }
  std::string make_token(const std::string& name, const std::string& role) {
    const Ended ended =
        Program(test_program("cumulusd"), {"token", name, "--role", role, "--token-file", folder_ / "tokens"})
            .wait();
    EXPECT_EQ(ended.exit_code, 0) << ended.errors;
    return ended.output;
  }
  Ended capabilities(std::vector<std::string> arguments, const Environment& environment = {}) const {
    arguments.insert(arguments.end(), {"capabilities", "--json"});
    return run_cumulus(arguments, environment);
  }
  /// Until the log says so.
  bool logged(const std::string& what) {
    for (int i = 0; i < 1000; ++i) {
      if (daemon_->program().errors().find(what) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  int page_port(const std::string& path) const {
    const std::regex address("pages at http://127\\.0\\.0\\.1:([0-9]+)" + path + "\n");
    const std::string log = daemon_->program().errors();
    std::smatch parts;
    return std::regex_search(log, parts, address) ? std::stoi(parts[1]) : 0;
  }

  TemporaryFolder folder_;
  const TestCertificate authority_;
  std::string token_;
  std::unique_ptr<Daemon> daemon_;
};

TEST_F(SecureDaemon, TakesTheCommandLineWithATokenOrACertificate) {
  const Ended token =
      capabilities({"--server", daemon_->address(), "--tls-ca", folder_ / "ca.pem", "--token-file", token_});
  EXPECT_EQ(token.exit_code, 0) << token.errors;
  const Ended certificate =
      capabilities({"--server", daemon_->address(), "--tls-ca", folder_ / "ca.pem", "--tls-cert",
                    folder_ / "client.pem", "--tls-key", folder_ / "client.key"});
  EXPECT_EQ(certificate.exit_code, 0) << certificate.errors;
}

TEST_F(SecureDaemon, RefusesWhoSaysNothingWithTheCure) {
  const Ended nobody = capabilities({"--server", daemon_->address(), "--tls-ca", folder_ / "ca.pem"});
  EXPECT_EQ(nobody.exit_code, 1);
  EXPECT_THAT(nobody.errors, HasSubstr("--token-file"));
  const Ended plain = capabilities({"--server", daemon_->address()});
  EXPECT_EQ(plain.exit_code, 3) << "without TLS nobody is there";
  EXPECT_THAT(plain.errors, HasSubstr("if it speaks TLS, name the authority of its certificate (--tls-ca"));
}

TEST_F(SecureDaemon, IsNotBelievedWithACertificateOfAnotherAuthority) {
  write_text(folder_ / "other.pem", TestCertificate("Another authority").certificate());
  const Ended ended = capabilities(
      {"--server", daemon_->address(), "--tls-ca", folder_ / "other.pem", "--token-file", token_});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_EQ(ended.errors,
            "cumulus: the server at " + daemon_->address() +
                " shows a certificate that no authority in tls_ca (--tls-ca) has issued, or one "
                "that is not valid today\n");
}

TEST_F(SecureDaemon, IsNotBelievedByAnotherName) {
  const std::string port = daemon_->address().substr(daemon_->address().rfind(':'));
  const Ended ended =
      capabilities({"--server", "localhost" + port, "--tls-ca", folder_ / "ca.pem", "--token-file", token_});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.errors, HasSubstr("shows a certificate for other names"));
}

TEST_F(SecureDaemon, ComparesItsCallsWithABareServers) {
  const Ended ended =
      run_cumulus({"--server", daemon_->address(), "--tls-ca", folder_ / "ca.pem", "--token-file", token_,
                   "--json", "bench", "--concurrency", "1", "--rounds", "1"});
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
}

TEST_F(SecureDaemon, TakesTheCommandLineByTheEnvironment) {
  const Environment environment = {{"CUMULUS_SERVER", daemon_->address()},
                                   {"CUMULUS_TLS_CA", folder_ / "ca.pem"},
                                   {"CUMULUS_TOKEN_FILE", token_}};
  EXPECT_EQ(capabilities({}, environment).exit_code, 0);
  Environment wrong = environment;
  wrong["CUMULUS_TOKEN_FILE"] = folder_ / "ca.pem";
  EXPECT_NE(capabilities({}, wrong).exit_code, 0);
  EXPECT_EQ(capabilities({"--token-file", token_}, wrong).exit_code, 0) << "an argument goes before it";
}

TEST_F(SecureDaemon, TakesTheCommandLineByItsConfigurationFile) {
  std::filesystem::create_directories(folder_.path() / "home/.config/cumulus");
  std::filesystem::copy(folder_ / "ca.pem", folder_.path() / "home/.config/cumulus");
  const std::string path = folder_ / "home/.config/cumulus/client.conf";
  write_text(path, "# where renders go\nserver = " + daemon_->address() +
                       "\ntls_ca=ca.pem  # beside this file\n" + "token_file = " + token_ + "\n");
  const Environment home = {{"HOME", folder_ / "home"}, {"XDG_CONFIG_HOME", ""}};
  const Ended ended = capabilities({}, home);
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
  const Ended named = capabilities({}, {{"CUMULUS_CONFIG", path}});
  EXPECT_EQ(named.exit_code, 0) << named.errors;
  Environment other = home;
  other["CUMULUS_TOKEN_FILE"] = folder_ / "none";
  EXPECT_THAT(capabilities({}, other).errors, HasSubstr("token_file: cannot read"));
  write_text(path, "server = x\n\ntls = yes\n");
  const Ended wrong = capabilities({}, home);
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.errors, HasSubstr("client.conf:3: 'tls = yes' is no setting"));
}

TEST_F(SecureDaemon, ServesAWholeJobOverTls) {
  write_text(folder_ / "text", "((a)[b]{c})");
  const Ended ended =
      run_cumulus({"--server", daemon_->address(), "--tls-ca", folder_ / "ca.pem", "--token-file", token_,
                   "--json", "match-brackets", folder_ / "text", "-o", folder_ / "out.npz"});
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "out.npz"));
}

TEST_F(SecureDaemon, ReadsItsFilesAnewOnSighupAndWhenTheyChange) {
  write_pair("server-2");
  EXPECT_TRUE(logged("certificates: read anew")) << "which was noticed";
  daemon_->program().send(SIGHUP);
  EXPECT_TRUE(logged("tokens: read anew")) << "though nothing of them has changed";
  write_text(folder_ / "server.key", "nonsense");
  EXPECT_TRUE(logged("holds no key in PEM")) << daemon_->program().errors();
  const Ended ended =
      capabilities({"--server", daemon_->address(), "--tls-ca", folder_ / "ca.pem", "--token-file", token_});
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_THAT(daemon_->program().errors(), Not(HasSubstr(read_file(token_).substr(0, 20))));
}

TEST_F(SecureDaemon, ShowsItsPagesToThoseWhoseTokensAllowIt) {
  const std::string scraper = make_token("prometheus", "metrics");
  const std::string admin = make_token("root", "admin");
  const int metrics = page_port("/metrics");
  const int status = page_port("/");
  const auto bearer = [](const std::string& token) {
    return "Authorization: Bearer " + token.substr(0, token.find('\n')) + "\r\n";
  };
  // The daemon may have read the first token before there was a second.
  ASSERT_TRUE(eventually([&] { return get_page(metrics, "/metrics", bearer(admin)).code == 200; }));
  const auto password = [](const std::string& token) {
    return "Authorization: Basic " + absl::Base64Escape("any:" + token.substr(0, token.find('\n'))) + "\r\n";
  };
  EXPECT_EQ(get_page(metrics, "/healthz").code, 200);
  const HttpPage nobody = get_page(metrics, "/metrics");
  EXPECT_EQ(nobody.code, 401);
  EXPECT_THAT(nobody.head, HasSubstr("WWW-Authenticate: Basic"));
  EXPECT_EQ(get_page(metrics, "/metrics", bearer("cumulus_wrong")).code, 401);
  EXPECT_EQ(get_page(metrics, "/metrics", bearer(read_file(token_))).code, 403);
  EXPECT_EQ(get_page(metrics, "/metrics", bearer(scraper)).code, 200);
  EXPECT_EQ(get_page(metrics, "/metrics", bearer(admin)).code, 200);
  for (const char* path : {"/", "/status.json"}) {
    EXPECT_EQ(get_page(status, path).code, 401) << path;
    EXPECT_EQ(get_page(status, path, bearer(scraper)).code, 403) << path;
    EXPECT_EQ(get_page(status, path, bearer(admin)).code, 200) << path;
    EXPECT_EQ(get_page(status, path, password(admin)).code, 200) << path;
  }
  EXPECT_EQ(get_page(status, "/metrics", password(scraper)).code, 200);
}

TEST(UnsecureDaemon, IsRefusedWhereOtherMachinesReachIt) {
  const Ended ended = Program(test_program("cumulusd"), {"--listen", "0.0.0.0:0"}).wait();
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.errors, HasSubstr("--tls-cert"));
  EXPECT_THAT(ended.errors, HasSubstr("--insecure"));
}

TEST(UnsecureDaemon, SaysWhichFileOfItsCertificatesIsWrong) {
  const Ended ended = Program(test_program("cumulusd"), {"--listen", "127.0.0.1:0", "--tls-cert", "/none.pem",
                                                         "--tls-key", "/none.key", "--backend", "cpu"})
                          .wait();
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.errors, HasSubstr("tls: cannot read '/none.pem'"));
}

TEST(UnsecureDaemon, IsNamedToAClientThatWantsTls) {
  const TemporaryFolder folder;
  write_text(folder / "ca.pem", TestCertificate("authority").certificate());
  const Daemon daemon(std::vector<std::string>{"--lame-duck", "0"});
  const Ended ended =
      run_cumulus({"--server", daemon.address(), "--tls-ca", folder / "ca.pem", "capabilities"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.errors, HasSubstr("tls_ca: the server at " + daemon.address() + " does not speak TLS"));
}

TEST(UnsecureDaemon, GetsNoTokenOverTheNetwork) {
  const TemporaryFolder folder;
  write_text(folder / "token", "cumulus_secret");
  const Ended ended =
      run_cumulus({"--server", "192.0.2.1:50651", "--token-file", folder / "token", "capabilities"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.errors, HasSubstr("unencrypted"));
}

}  // namespace
}  // namespace cumulus::testing
