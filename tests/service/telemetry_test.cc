#include "server/runtime/metrics/telemetry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "server/runtime/metrics/runtime_metrics.h"
#include "server/runtime/status_page/endpoints.h"
#include "tests/support/http_client.h"
#include "tests/support/operation_calls.h"
#include "tests/support/prometheus_text.h"
#include "tests/support/test_server.h"

namespace cumulus::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";

class TelemetryTest : public ::testing::Test {
 protected:
  static server::Configuration configuration() {
    server::Configuration settings = TestServer::configuration();
    server::PrincipalLimits limits;
    settings.principals = server::Principals(limits, {{"local", limits}, {"10.0.0.7", limits}});
    return settings;
  }

  std::string text() { return server_.runtime.telemetry.text(&now_); }

  /// A box filter of a small image; `request_id` may be a wrong one.
  grpc::Status filter(grpc::ClientContext& context, const std::string& request_id = {}) {
    v1::FilterBoxRequest request;
    set_inline<float>(*request.mutable_image(), v1::FLOAT32, {4, 4}, std::vector<float>(16, 1.0F));
    request.set_radius(1);
    request.mutable_options()->set_request_id(request_id);
    v1::OperationResult result;
    return server_.operations->FilterBox(&context, request, &result);
  }

  TestServer server_{configuration()};
  server::RuntimeMetrics now_{server_.runtime,
                              {.connections = [] { return std::size_t{3}; }, .serving = [] { return true; }}};
};

TEST_F(TelemetryTest, CallsAreCountedByMethodAndCode) {
  grpc::ClientContext good;
  ASSERT_TRUE(filter(good).ok());
  grpc::ClientContext bad;
  ASSERT_EQ(filter(bad, std::string(1000, 'x')).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  server_.create_session();
  const PrometheusText metrics(text());
  EXPECT_EQ(metrics.value("cumulus_rpc_handled_total", {{"method", "FilterBox"}, {"code", "OK"}}), 1);
  EXPECT_EQ(
      metrics.value("cumulus_rpc_handled_total", {{"method", "FilterBox"}, {"code", "INVALID_ARGUMENT"}}), 1);
  EXPECT_EQ(metrics.value("cumulus_rpc_handled_total", {{"method", "CreateSession"}, {"code", "OK"}}), 1);
  EXPECT_EQ(metrics.value("cumulus_rpc_duration_seconds_count", {{"method", "FilterBox"}}), 2);
  EXPECT_EQ(metrics.value("cumulus_rejections_total", {{"reason", "INVALID_FIELD"}}), 1);
  EXPECT_EQ(metrics.value("cumulus_stage_seconds_count", {{"stage", "compute"}}), 1);
  EXPECT_EQ(metrics.value("cumulus_queue_wait_seconds_count", {{"principal", "local"}}), 1);
  EXPECT_EQ(metrics.value("cumulus_queue_wait_seconds_count", {{"principal", "other"}}), 0);
}

TEST_F(TelemetryTest, WhatTheServerHasIsShown) {
  CallMaker maker(server_, server_.create_session());
  maker.put_floats({64, 64});
  const std::string device = server_.slot().device->name();
  const PrometheusText metrics(text());
  const auto memory = [&](const std::string& state) {
    return metrics.value("cumulus_device_memory_bytes", {{"device", device}, {"state", state}});
  };
  EXPECT_EQ(memory("buffers"), 64 * 64 * 4);
  EXPECT_EQ(memory("calls"), 0);
  EXPECT_EQ(memory("buffers") + memory("free"), static_cast<double>(TestServer::kBudget));
  EXPECT_EQ(metrics.value("cumulus_sessions", {{"device", device}}), 1);
  EXPECT_EQ(metrics.value("cumulus_buffers", {{"device", device}}), 1);
  EXPECT_EQ(metrics.value("cumulus_queue_depth", {{"device", device}, {"class", "batch"}}), 0);
  EXPECT_EQ(metrics.value("cumulus_device_healthy", {{"device", device}}), 1);
  EXPECT_EQ(metrics.value("cumulus_connections"), 3);
  EXPECT_EQ(metrics.value("cumulus_serving"), 1);
  EXPECT_GT(metrics.value("process_resident_memory_bytes"), 1 << 20);
  EXPECT_GT(metrics.value("process_open_fds"), 3);
  EXPECT_GT(metrics.value("process_start_time_seconds"), 1.6e9);
  EXPECT_GT(metrics.value("cumulus_host_memory_budget_bytes"), static_cast<double>(TestServer::kBudget));
  for (const char* family :
       {"cumulus_evictions_total", "cumulus_device_faults_total", "cumulus_transfer_bytes_total",
        "cumulus_build_info", "cumulus_decode_refusals_total"})
    EXPECT_TRUE(metrics.has_family(family)) << family;
}

TEST_F(TelemetryTest, AnEndThatNobodyWantedIsCountedByItsReason) {
  server_.create_session();
  server_.runtime.sessions.expire(absl::Now() + absl::Hours(48));
  EXPECT_EQ(PrometheusText(text()).value("cumulus_evictions_total", {{"reason", "session_expired"}}), 1);
}

TEST_F(TelemetryTest, AFileThatIsNoImageIsADecodeRefusal) {
  v1::FilterBoxRequest request;
  request.mutable_image()->mutable_encoded()->set_data("no image at all");
  request.set_radius(1);
  v1::OperationResult result;
  grpc::ClientContext context;
  EXPECT_FALSE(server_.operations->FilterBox(&context, request, &result).ok());
  const PrometheusText metrics(text());
  double refused = 0;
  for (const std::string& reason : metrics.values_of("cumulus_decode_refusals_total", "reason"))
    refused += metrics.value("cumulus_decode_refusals_total", {{"reason", reason}});
  EXPECT_EQ(refused, 1);
}

TEST_F(TelemetryTest, ClientsAndTheirWordsMakeNoLabels) {
  grpc::ClientContext first;
  filter(first);
  grpc::ClientContext session_context;
  v1::Session session;
  v1::GetSessionRequest unknown;
  unknown.set_name("sessions/none");
  server_.sessions->GetSession(&session_context, unknown, &session);
  const std::size_t before = PrometheusText(text()).size();
  for (int i = 0; i < 50; ++i) {
    server::CallRecord call;
    call.method = "FilterBox";
    call.principal = "10.1.0." + std::to_string(i);
    call.client = "ipv4:" + call.principal + ":99";
    call.ran = true;
    server_.runtime.telemetry.finished(call);
    grpc::ClientContext context;
    unknown.set_name("sessions/" + std::to_string(i));
    server_.sessions->GetSession(&context, unknown, &session);
  }
  const PrometheusText metrics(text());
  EXPECT_EQ(metrics.size(), before);
  EXPECT_EQ(metrics.value("cumulus_queue_wait_seconds_count", {{"principal", "other"}}), 50);
}

TEST_F(TelemetryTest, CertificatesAndFilesThatCannotBeUsedAreSeen) {
  EXPECT_EQ(PrometheusText(text()).values_of("cumulus_files_usable", "files").size(), 0U);
  const server::RuntimeMetrics now(
      server_.runtime,
      {.connections = {},
       .serving = {},
       .certificate_expiry = [] { return absl::FromUnixSeconds(1'800'000'000); },
       .usable_files =
           [] {
             return std::vector<std::pair<std::string, bool>>{{"tokens", true}, {"certificates", false}};
           }});
  const PrometheusText metrics(server_.runtime.telemetry.text(&now));
  EXPECT_EQ(metrics.value("cumulus_certificate_expiry_timestamp_seconds"), 1'800'000'000);
  EXPECT_EQ(metrics.value("cumulus_files_usable", {{"files", "tokens"}}), 1);
  EXPECT_EQ(metrics.value("cumulus_files_usable", {{"files", "certificates"}}), 0);
}

/// The dashboard and the alerts are read by nobody who would notice a name that is none.
TEST_F(TelemetryTest, AlertsAndDashboardNameMetricsThatThereAre) {
  grpc::ClientContext good;
  ASSERT_TRUE(filter(good).ok());
  grpc::ClientContext bad;
  filter(bad, std::string(1000, 'x'));
  const PrometheusText metrics(text());
  const std::regex name("(cumulus|process)_[a-z_]+");
  const std::regex suffix("_(bucket|sum|count)$");
  for (const char* file : {"/alerts.yml", "/grafana/dashboards/cumulus.json"}) {
    std::ifstream stream(std::string(CUMULUS_DOCKER) + file);
    const std::string contents{std::istreambuf_iterator<char>(stream), {}};
    std::set<std::string> names;
    for (std::sregex_iterator each(contents.begin(), contents.end(), name), end; each != end; ++each)
      names.insert(std::regex_replace(each->str(), suffix, ""));
    EXPECT_GT(names.size(), 8U) << file;
    for (const std::string& each : names) EXPECT_TRUE(metrics.has_family(each)) << file << ": " << each;
  }
}

TEST_F(TelemetryTest, ATraceComesBackAndAHostileOneDoesNot) {
  grpc::ClientContext context;
  context.AddMetadata("traceparent", "00-" + kTrace + "-00f067aa0ba902b7-01");
  ASSERT_TRUE(filter(context).ok());
  const auto& metadata = context.GetServerInitialMetadata();
  const auto found = metadata.find("traceparent");
  ASSERT_NE(found, metadata.end());
  const std::string returned(found->second.data(), found->second.size());
  EXPECT_EQ(returned.substr(0, 36), "00-" + kTrace + "-");
  EXPECT_THAT(returned, Not(HasSubstr("00f067aa0ba902b7")));
  grpc::ClientContext hostile;
  hostile.AddMetadata("traceparent", "00-" + kTrace + "-\",\"admin\":true-01");
  ASSERT_TRUE(filter(hostile).ok());
  EXPECT_EQ(hostile.GetServerInitialMetadata().count("traceparent"), 0U);
  grpc::ClientContext twice;
  for (int i = 0; i < 2; ++i) twice.AddMetadata("traceparent", "00-" + kTrace + "-00f067aa0ba902b7-01");
  ASSERT_TRUE(filter(twice).ok());
  EXPECT_EQ(twice.GetServerInitialMetadata().count("traceparent"), 0U);
}

TEST_F(TelemetryTest, AnErrorIsRememberedWithItsTrace) {
  grpc::ClientContext context;
  context.AddMetadata("traceparent", "00-" + kTrace + "-00f067aa0ba902b7-01");
  filter(context, std::string(1000, 'x'));
  const auto errors = server_.runtime.telemetry.recent_errors();
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].method, "FilterBox");
  EXPECT_EQ(errors[0].trace_id, kTrace);
  for (int i = 0; i < 100; ++i) {
    grpc::ClientContext again;
    filter(again, std::string(1000, 'x'));
  }
  EXPECT_EQ(server_.runtime.telemetry.recent_errors().size(), server::Telemetry::kRecentErrors);
}

}  // namespace
}  // namespace cumulus::testing
