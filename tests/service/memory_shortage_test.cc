// Calls that find too little memory wait for it.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/channel_from.h"
#include "tests/support/test_server.h"

namespace cumulus::testing {
namespace {

TEST(MemoryShortage, CallsThatFitOneByOneAllSucceedEightAtATime) {
  server::Configuration configuration = TestServer::configuration();
  configuration.devices.cpu_calls = 8;
  configuration.devices.cpu_memory_bytes = std::size_t{4} << 20;  // a call takes more than half of it
  TestServer server(configuration);
  v1::FilterBoxRequest request;
  set_inline(*request.mutable_image(), v1::FLOAT32, {300, 300}, std::vector<float>(300 * 300, 1.0F));
  request.set_radius(3);
  request.set_deviation(true);
  std::atomic<int> next = 0;
  std::atomic<int> succeeded = 0;
  std::vector<std::thread> clients;
  for (int client = 0; client < 8; ++client) {
    clients.emplace_back([&, client] {
      // Each a principal of its own, so that their calls run side by side where memory allows it.
      const std::string address = "127.0.0." + std::to_string(11 + client);
      const auto operations = v1::Operations::NewStub(channel_from(address.c_str(), server.port()));
      while (next++ < 16) {
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
        v1::OperationResult result;
        const grpc::Status status = operations->FilterBox(&context, request, &result);
        EXPECT_TRUE(status.ok()) << status.error_message();
        if (status.ok()) ++succeeded;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(succeeded, 16);
  EXPECT_LE(server.slot().device->budget()->high_water_bytes(), configuration.devices.cpu_memory_bytes);
}

}  // namespace
}  // namespace cumulus::testing
