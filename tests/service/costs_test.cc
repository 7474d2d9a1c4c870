// What calls are predicted to take, against what they take.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/operation_calls.h"

namespace cumulus::testing {
namespace {

class SlowCosts : public ::testing::TestWithParam<std::string> {};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

TEST_P(SlowCosts, ArePredictedWithinFourTimes) {
  constexpr int kWarmUps = 6;
  constexpr int kCalls = 7;
  constexpr double kBar = 4;
  server::Configuration configuration = TestServer::configuration();
  configuration.devices.cpu_memory_bytes = std::size_t{2} << 30;
  TestServer server(configuration);
  CallMaker maker(server, server.create_session());
  const auto found = operation_calls().find(GetParam());
  ASSERT_NE(found, operation_calls().end()) << GetParam() << " has no case in operation_calls.h";
  const std::vector<std::int64_t> sizes = {found->second.some / 8, found->second.some,
                                           found->second.some * 8};
  std::vector<CallMaker::Call> calls;
  for (const std::int64_t size : sizes) calls.push_back(found->second.make(maker, size));
  std::vector<std::vector<double>> ratios(sizes.size());
  for (int i = 0; i < kWarmUps + kCalls; ++i) {
    for (std::size_t size = 0; size < sizes.size(); ++size) {
      grpc::ClientContext context;
      v1::OperationResult result;
      const grpc::Status status = calls[size](context, result);
      ASSERT_TRUE(status.ok()) << status.error_message();
      ASSERT_TRUE(eventually([&] { return server.slot().queue->running() == 0; }));
      const auto record = server.slot().queue->history().of(GetParam());
      if (i >= kWarmUps) ratios[size].push_back(record.last_measured / record.last_prediction);
      if (i + 1 == kWarmUps + kCalls) {
        std::printf("%s of %lld: %.3f ms, %.2f of the prediction, which was corrected by %.2f\n",
                    GetParam().c_str(), static_cast<long long>(sizes[size]), record.last_measured * 1e3,
                    median(ratios[size]), record.ratio);
      }
    }
  }
  for (std::size_t size = 0; size < sizes.size(); ++size) {
    EXPECT_LE(median(ratios[size]), kBar) << sizes[size] << " elements";
    EXPECT_GE(median(ratios[size]), 1 / kBar) << sizes[size] << " elements";
  }
}

INSTANTIATE_TEST_SUITE_P(EveryRpc, SlowCosts, ::testing::ValuesIn(operation_names()),
                         [](const auto& rpc) { return rpc.param; });

}  // namespace
}  // namespace cumulus::testing
