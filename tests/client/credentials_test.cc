#include "library/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "cumulus/client.h"
#include "tests/support/temporary_folder.h"

namespace cumulus {
namespace {

using ::testing::HasSubstr;

/// What the environment says while a test runs; nothing else of Cumulus's is in it.
class Surroundings {
 public:
  explicit Surroundings(const std::map<std::string, std::string>& variables) {
    for (const char* name : {"CUMULUS_SERVER", "CUMULUS_TLS_CA", "CUMULUS_TLS_CERT", "CUMULUS_TLS_KEY",
                             "CUMULUS_TOKEN_FILE", "CUMULUS_CONFIG", "XDG_CONFIG_HOME", "HOME"}) {
      if (const char* value = std::getenv(name); value != nullptr) before_[name] = value;
      ::unsetenv(name);
      names_.emplace_back(name);
    }
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Surroundings() {
    for (const std::string& name : names_) ::unsetenv(name.c_str());
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  Surroundings(const Surroundings&) = delete;
  Surroundings& operator=(const Surroundings&) = delete;

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::string> before_;
};

class ClientCredentials : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  static std::string complaint(const std::string& target, const Credentials& files) {
    const absl::StatusOr<ChannelSecurity> security = secure(target, files);
    EXPECT_EQ(security.status().code(), absl::StatusCode::kInvalidArgument) << security.status();
    return std::string(security.status().message());
  }

  testing::TemporaryFolder folder_;
};

TEST_F(ClientCredentials, SomeTargetsAreThisMachine) {
  for (const char* here :
       {"unix:/run/cumulus", "localhost:50651", "127.0.0.1:50651", "127.1.2.3:1", "[::1]:1"})
    EXPECT_TRUE(is_this_machine(here)) << here;
  for (const char* there : {"render.example.com:1", "127.example.com:1", "127.0.0.1.example.com:1",
                            "10.127.0.1:1", "[::2]:1", "localhost.example.com:1"})
    EXPECT_FALSE(is_this_machine(there)) << there;
}

TEST_F(ClientCredentials, ATokenTravelsOverTlsOrToThisMachine) {
  const std::string token = write("token", "cumulus_secret\n");
  const std::string ca = write("ca.pem", "-----BEGIN CERTIFICATE-----\n");
  EXPECT_THAT(complaint("127.example.com:1", {.token_file = token}), HasSubstr("unencrypted"));
  EXPECT_EQ(secure("127.0.0.1:1", {.token_file = token})->authorization, "Bearer cumulus_secret");
  EXPECT_EQ(secure("render.example.com:1", {.tls_ca = ca, .token_file = token})->authorization,
            "Bearer cumulus_secret");
  EXPECT_EQ(secure("unix:/run/cumulus", {.token_file = token})->authorization, "") << "no need of it";
}

TEST_F(ClientCredentials, AnAddressHasAPort) {
  for (const char* address : {"localhost:1", "[::1]:65535", "dns:render.example.com:50651"})
    EXPECT_TRUE(secure(address, {}).ok()) << address;
  for (const char* address : {"localhost", "localhost:", "localhost:0", "localhost:99999", "localhost:http",
                              "[::1]", "http://localhost", "grpc://localhost:1"})
    EXPECT_THAT(complaint(address, {}),
                HasSubstr(std::string("server: is ") + address + "; HOST:PORT with a port of 1 to 65535"));
  EXPECT_THAT(complaint("", {}), HasSubstr("server: is empty; HOST:PORT"));
}

TEST_F(ClientCredentials, AnAuthorityIsACertificate) {
  const std::string key = write("ca.key", "-----BEGIN PRIVATE KEY-----\n");
  EXPECT_THAT(complaint("localhost:1", {.tls_ca = key}), HasSubstr("has no certificate in PEM"));
}

TEST_F(ClientCredentials, WhatDoesNotGoTogetherIsRefused) {
  const std::string file = write("file", "two words");
  EXPECT_THAT(complaint("a:1", {.tls_ca = file, .tls_cert = file}), HasSubstr("tls_key is missing"));
  EXPECT_THAT(complaint("a:1", {.tls_ca = file, .tls_key = file}), HasSubstr("tls_cert is missing"));
  EXPECT_THAT(complaint("a:1", {.tls_cert = file, .tls_key = file}), HasSubstr("tls_ca is missing"));
  EXPECT_THAT(complaint("a:1", {.tls_ca = file, .token_file = file}), HasSubstr("does not hold one token"));
  EXPECT_THAT(complaint("a:1", {.tls_ca = folder_ / "none"}), HasSubstr("tls_ca: cannot read '"));
  EXPECT_THAT(complaint("a:1", {.tls_ca = folder_.path()}), HasSubstr("it is a folder"));
}

TEST_F(ClientCredentials, TheEnvironmentGoesBeforeTheFile) {
  write("home/.config/cumulus/client.conf", "server = file:1  # ours\n\ntls_ca=ca.pem\ntoken_file = /t\n");
  const Surroundings surroundings({{"HOME", folder_ / "home"}, {"CUMULUS_SERVER", "variable:1"}});
  const absl::StatusOr<ClientSettings> settings = read_client_settings();
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->server, "variable:1");
  EXPECT_EQ(settings->credentials.tls_ca, folder_ / "home/.config/cumulus/ca.pem") << "beside the file";
  EXPECT_EQ(settings->credentials.token_file, "/t");
  EXPECT_EQ(settings->credentials.tls_cert, "");
}

TEST_F(ClientCredentials, TheFileNeedNotBeThereUnlessItIsNamed) {
  {
    const Surroundings surroundings({{"HOME", folder_.path()}});
    ASSERT_TRUE(read_client_settings().ok());
  }
  const Surroundings surroundings({{"CUMULUS_CONFIG", folder_ / "none"}});
  EXPECT_THAT(std::string(read_client_settings().status().message()), HasSubstr("cannot read"));
}

TEST_F(ClientCredentials, AWrongLineIsNamed) {
  const std::string path = write("client.conf", "# here\ntls_ca = a\ntls_certificate = b\n");
  const Surroundings surroundings({{"CUMULUS_CONFIG", path}});
  EXPECT_THAT(std::string(read_client_settings().status().message()),
              HasSubstr(path + ":3: 'tls_certificate = b' is no setting"));
}

}  // namespace
}  // namespace cumulus
