// What docs/operations_guide.md and docs/security.md name is there: metrics, flags, fields of the
// configuration.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <string>

#include "cumulus/config/v1/config.pb.h"
#include "cumulus/v1/server.grpc.pb.h"
#include "tests/end_to_end/program.h"
#include "tests/support/http_client.h"
#include "tests/support/prometheus_text.h"

namespace cumulus::testing {
namespace {

/// What `pattern`'s first group matches in a guide; all of it, or one section's part.
std::set<std::string> named_in(const std::string& guide, const std::string& pattern,
                               const std::string& section = {}) {
  std::string text = read_file(std::string(CUMULUS_DOCS) + "/" + guide);
  if (!section.empty()) {
    const std::size_t begin = text.find("\n## " + section + "\n");
    EXPECT_NE(begin, std::string::npos) << guide << " has no section " << section;
    if (begin == std::string::npos) return {};
    text = text.substr(begin + 1, text.find("\n## ", begin + 1) - begin);
  }
  const std::regex expression(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator each(text.begin(), text.end(), expression), end; each != end; ++each)
    found.insert((*each)[1]);
  return found;
}

/// Whether `path`, "limits.max_ttl", leads to a field, by way of messages.
bool leads_to_field(const std::string& path) {
  const google::protobuf::Descriptor* message = config::v1::ServerConfig::descriptor();
  for (std::size_t begin = 0; begin != std::string::npos;) {
    const std::size_t end = path.find('.', begin);
    const auto* field =
        message != nullptr ? message->FindFieldByName(path.substr(begin, end - begin)) : nullptr;
    if (field == nullptr) return false;
    message = field->message_type();
    begin = end == std::string::npos ? end : end + 1;
  }
  return true;
}

TEST(Guides, NameTheMetricsThatADaemonHasAndAllOfThem) {
  const TemporaryFolder folder;
  const int port = RawListener().port();
  std::ofstream(folder / "config") << "observability { metrics: \"127.0.0.1:" << port << "\" }\n";
  const Daemon daemon({"--config", folder / "config"});
  grpc::ClientContext context;
  v1::Capabilities capabilities;
  const auto channel = grpc::CreateChannel(daemon.address(), grpc::InsecureChannelCredentials());
  ASSERT_TRUE(v1::Server::NewStub(channel)->GetCapabilities(&context, {}, &capabilities).ok());
  const HttpPage page = get_page(port, "/metrics");
  ASSERT_EQ(page.code, 200);
  EXPECT_EQ(named_in("operations_guide.md", "`((?:cumulus|process)_[a-z_]+)[`{]", "Metrics"),
            PrometheusText(page.body).families());
}

TEST(Guides, NameFlagsThatThereAre) {
  const auto help_of = [](const std::string& program, std::vector<std::string> arguments) {
    arguments.emplace_back("--help");
    const Ended ended = Program(test_program(program), arguments).wait();
    EXPECT_EQ(ended.exit_code, 0);
    return ended.output;
  };
  const std::string help = help_of("cumulusd", {}) + help_of("cumulusd", {"token"}) + help_of("cumulus", {});
  for (const char* guide : {"operations_guide.md", "security.md"}) {
    const std::set<std::string> flags = named_in(guide, "[ `(](--[a-z-]+)");
    EXPECT_GE(flags.size(), 5U);
    for (const std::string& flag : flags) {
      EXPECT_TRUE(std::regex_search(help, std::regex(flag + "[ ,{\n]"))) << guide << ": " << flag;
    }
  }
}

/// What starts the daemon kills it no sooner than the daemon would end by itself.
TEST(Guides, UnitAndContainersWaitForAWholeDrain) {
  const auto number_in = [](const std::string& file, const std::string& pattern) {
    const std::string text = read_file(std::string(CUMULUS_DOCS) + "/../" + file);
    std::smatch found;
    EXPECT_TRUE(std::regex_search(text, found, std::regex(pattern))) << file << ": " << pattern;
    return found.empty() ? 0.0 : std::stod(found[1]);
  };
  double whole = 0;
  for (const char* part : {"lame_duck", "drain", "grace"})
    whole += number_in("config/default.textproto", std::string(part) + " \\{ seconds: ([0-9]+)");
  EXPECT_GT(whole, 30);
  EXPECT_GT(number_in("packaging/cumulusd.service.in", "TimeoutStopSec=([0-9]+)"), whole);
  EXPECT_GT(number_in("docker/compose.yaml", "stop_grace_period: ([0-9]+)s"), whole);
}

TEST(Guides, NameFieldsThatTheConfigurationHas) {
  const auto* names = config::v1::ServerConfig::descriptor();
  for (const char* guide : {"operations_guide.md", "security.md"}) {
    int fields = 0;
    for (const std::string& path : named_in(guide, "`([a-z_]+(?:\\.[a-z_]+)+)[`: ]")) {
      const std::string first = path.substr(0, path.find('.'));
      if (names->FindFieldByName(first) == nullptr) continue;  // a file, or a service
      ++fields;
      EXPECT_TRUE(leads_to_field(path)) << guide << ": " << path;
    }
    EXPECT_GE(fields, 3) << guide;
  }
  EXPECT_FALSE(leads_to_field("limits.max_ttl.hours"));
  EXPECT_FALSE(leads_to_field("limits.none"));
}

}  // namespace
}  // namespace cumulus::testing
