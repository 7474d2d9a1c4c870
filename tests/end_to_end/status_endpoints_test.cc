// The daemon's pages over HTTP: metrics, health and the status page, as who looks after it sees them.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "cumulus/v1/operations.grpc.pb.h"
#include "cumulus/v1/server.grpc.pb.h"
#include "cumulus/v1/sessions.grpc.pb.h"
#include "tests/end_to_end/program.h"
#include "tests/support/http_client.h"
#include "tests/support/prometheus_text.h"

namespace cumulus::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A daemon with both pages, and a log of JSON lines in a file.
class StatusEndpoints : public ::testing::Test {
 protected:
  StatusEndpoints() {
    std::ofstream(folder_ / "config")
        << "logging { json: true file: \"" << (folder_ / "log")
        << "\" }\nobservability { metrics: \"127.0.0.1:0\" status: \"127.0.0.1:0\" }\n";
    daemon_ = std::make_unique<Daemon>(
        std::vector<std::string>{"--config", (folder_ / "config"), "--lame-duck", "2"});
    channel_ = grpc::CreateChannel(daemon_->address(), grpc::InsecureChannelCredentials());
    metrics_ = port_of("/metrics");
    status_ = port_of("/");
  }

  std::vector<google::protobuf::Struct> log_lines() const {
    std::vector<google::protobuf::Struct> lines;
    std::ifstream file(folder_ / "log");
    for (std::string line; std::getline(file, line);) {
      if (!google::protobuf::util::JsonStringToMessage(line, &lines.emplace_back()).ok())
        ADD_FAILURE() << "no JSON: " << line;
    }
    return lines;
  }
  /// The line of the last call of `method`, once it is there.
  google::protobuf::Struct line_of(const std::string& method) const {
    for (int i = 0; i < 400; ++i) {
      for (const google::protobuf::Struct& line : log_lines()) {
        const auto found = line.fields().find("method");
        if (found != line.fields().end() && found->second.string_value() == method) return line;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
    ADD_FAILURE() << "no line of " << method;
    return {};
  }

  const TemporaryFolder folder_;
  std::unique_ptr<Daemon> daemon_;
  std::shared_ptr<grpc::Channel> channel_;
  int metrics_ = 0;
  int status_ = 0;

 private:
  int port_of(const std::string& path) const {
    const std::regex address("pages at http://127\\.0\\.0\\.1:([0-9]+)" + path);
    for (int i = 0; i < 400; ++i) {
      for (const google::protobuf::Struct& line : log_lines()) {
        std::smatch parts;
        const auto found = line.fields().find("message");
        const std::string text = found != line.fields().end() ? found->second.string_value() : "";
        if (std::regex_match(text, parts, address)) return std::stoi(parts[1]);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
    ADD_FAILURE() << "the log names no page " << path;
    return 0;
  }
};

TEST_F(StatusEndpoints, ServeMetricsThatPrometheusTakes) {
  grpc::ClientContext context;
  v1::Capabilities capabilities;
  ASSERT_TRUE(v1::Server::NewStub(channel_)->GetCapabilities(&context, {}, &capabilities).ok());
  const HttpPage page = get_page(metrics_, "/metrics");
  ASSERT_EQ(page.code, 200);
  EXPECT_THAT(page.head, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  const PrometheusText metrics(page.body);
  EXPECT_EQ(metrics.value("cumulus_rpc_handled_total", {{"method", "GetCapabilities"}, {"code", "OK"}}), 1);
  EXPECT_EQ(metrics.value("cumulus_serving"), 1);
  if (std::system("command -v promtool >/dev/null") != 0) return;  // NOLINT(concurrency-mt-unsafe)
  std::ofstream(folder_ / "metrics") << page.body;
  const std::string check =
      "promtool check metrics <" + (folder_ / "metrics") + " >" + (folder_ / "said") + " 2>&1";
  EXPECT_EQ(std::system(check.c_str()), 0) << read_file(folder_ / "said");  // NOLINT(concurrency-mt-unsafe)
}

TEST_F(StatusEndpoints, LogsEveryKindOfCallWithItsTrace) {
  grpc::ClientContext context;
  context.AddMetadata("traceparent", "00-" + kTrace + "-00f067aa0ba902b7-01");
  v1::Capabilities capabilities;
  ASSERT_TRUE(v1::Server::NewStub(channel_)->GetCapabilities(&context, {}, &capabilities).ok());
  grpc::ClientContext session_context;
  session_context.AddMetadata("traceparent", "00-" + kTrace + "-00f067aa0ba902b7-01");
  v1::GetSessionRequest request;
  request.set_name("sessions/none");
  v1::Session session;
  EXPECT_FALSE(v1::Sessions::NewStub(channel_)->GetSession(&session_context, request, &session).ok());
  for (const char* method : {"GetCapabilities", "GetSession"}) {
    const google::protobuf::Struct line = line_of(method);
    EXPECT_EQ(line.fields().at("trace_id").string_value(), kTrace);
    EXPECT_EQ(line.fields().at("parent_span_id").string_value(), "00f067aa0ba902b7");
    EXPECT_EQ(line.fields().at("span_id").string_value().size(), 16U);
    EXPECT_EQ(line.fields().at("principal").string_value(), "127.0.0.1");
  }
  EXPECT_EQ(line_of("GetSession").fields().at("code").string_value(), "NOT_FOUND");
}

TEST_F(StatusEndpoints, SayWhetherTheServerIsReady) {
  EXPECT_EQ(get_page(metrics_, "/healthz").code, 200);
  EXPECT_EQ(get_page(metrics_, "/readyz").code, 200);
  daemon_->program().send(SIGTERM);
  int code = 200;
  for (int i = 0; i < 100 && code == 200; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    code = get_page(metrics_, "/readyz").code;
  }
  EXPECT_EQ(code, 503);  // while the lame duck still answers
  EXPECT_EQ(get_page(metrics_, "/healthz").code, 200);
  EXPECT_EQ(daemon_->program().wait().exit_code, 0);
}

TEST_F(StatusEndpoints, ShowAPageToWhoAsksForThisAddress) {
  EXPECT_THAT(get_page(status_, "/").body, HasSubstr("</html>"));
  EXPECT_EQ(get_page(status_, "/status.json", "Host: localhost:" + std::to_string(status_) + "\r\n").code,
            200);
  EXPECT_EQ(get_page(status_, "/status.json", "Host: [::1]\r\n").code, 200);
  EXPECT_EQ(get_page(status_, "/metrics").code, 200);
  EXPECT_EQ(get_page(status_, "/none").code, 404);
  // A name of somebody else's that was pointed to this machine.
  for (const char* host : {"attacker.example", "127.0.0.1.attacker.example:80", "10.0.0.1", "unix:"})
    EXPECT_EQ(get_page(status_, "/status.json", std::string("Host: ") + host + "\r\n").code, 421) << host;
}

TEST_F(StatusEndpoints, HostileClientsStopNeitherPagesNorCalls) {
  const auto open_files = [&] {
    return PrometheusText(get_page(metrics_, "/metrics").body).value("process_open_fds");
  };
  const double before = open_files();
  std::vector<std::unique_ptr<RawConnection>> connections;
  for (int i = 0; i < 300; ++i) {
    connections.push_back(std::make_unique<RawConnection>(i % 2 == 0 ? metrics_ : status_));
    connections.back()->send(i % 3 == 0 ? "GET / HTTP/1.1\r\nX: " : std::string(i % 3 == 1 ? 0 : 4000, 'x'));
  }
  EXPECT_EQ(get_page(metrics_, "/metrics").code, 200);
  EXPECT_EQ(get_page(status_, "/status.json").code, 200);
  grpc::ClientContext context;
  v1::Capabilities capabilities;
  EXPECT_TRUE(v1::Server::NewStub(channel_)->GetCapabilities(&context, {}, &capabilities).ok());
  EXPECT_LT(open_files(), before + 80);  // each page keeps 32 connections
}

}  // namespace
}  // namespace cumulus::testing
