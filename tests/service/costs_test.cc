// What calls are predicted to take, against what they take.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/operation_calls.h"
#include "tests/support/tries.h"

namespace cumulus::testing {
namespace {

class SlowCosts : public ::testing::TestWithParam<std::string> {};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Of calls of three sizes, how many times as long as predicted the median of each takes.
std::vector<double> times_as_predicted(const std::string& operation) {
  constexpr int kWarmUps = 6;
  constexpr int kCalls = 7;
  server::Configuration configuration = TestServer::configuration();
  configuration.devices.cpu_memory_bytes = std::size_t{2} << 30;
  TestServer server(configuration);
  CallMaker maker(server, server.create_session());
  const auto& made = operation_calls().at(operation);
  const std::vector<std::int64_t> sizes = {made.some / 8, made.some, made.some * 8};
  std::vector<CallMaker::Call> calls;
  for (const std::int64_t size : sizes) calls.push_back(made.make(maker, size));
  std::vector<std::vector<double>> ratios(sizes.size());
  for (int i = 0; i < kWarmUps + kCalls; ++i) {
    for (std::size_t size = 0; size < sizes.size(); ++size) {
      grpc::ClientContext context;
      v1::OperationResult result;
      const grpc::Status status = calls[size](context, result);
      EXPECT_TRUE(status.ok()) << status.error_message();
      EXPECT_TRUE(eventually([&] { return server.slot().queue->running() == 0; }));
      const auto record = server.slot().queue->history().of(operation);
      if (i >= kWarmUps) ratios[size].push_back(record.last_measured / record.last_prediction);
    }
  }
  std::vector<double> medians;
  for (std::size_t size = 0; size < sizes.size(); ++size) {
    medians.push_back(median(ratios[size]));
    std::printf("%s of %lld: %.2f of the prediction\n", operation.c_str(),
                static_cast<long long>(sizes[size]), medians.back());
  }
  return medians;
}

TEST_P(SlowCosts, ArePredictedWithinFourTimes) {
  constexpr double kBar = 4;
  ASSERT_TRUE(operation_calls().contains(GetParam())) << GetParam() << " has no case in operation_calls.h";
  EXPECT_TRUE(once_in_three([&] {
    const std::vector<double> times = times_as_predicted(GetParam());
    return std::all_of(times.begin(), times.end(),
                       [](double each) { return each <= kBar && each >= 1 / kBar; });
  }));
}

INSTANTIATE_TEST_SUITE_P(EveryRpc, SlowCosts, ::testing::ValuesIn(operation_names()),
                         [](const auto& rpc) { return rpc.param; });

}  // namespace
}  // namespace cumulus::testing
