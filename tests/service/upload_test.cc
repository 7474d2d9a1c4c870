// What an upload leaves: in its buffer, and in its client's share of transfers.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/runtime/metrics/telemetry.h"
#include "server/runtime/transfer/transfer_shares.h"
#include "tests/support/eventually.h"
#include "tests/support/prometheus_text.h"
#include "tests/support/transfer_server.h"

namespace cumulus::testing {
namespace {

TEST(Uploads, KeepWhatTheirSpecSaysOfTheBuffer) {
  TransferServer server(host_device());
  std::vector<v1::WriteBufferRequest> messages = server.messages("abc");
  messages[0].mutable_spec()->mutable_ttl()->set_seconds(3600);
  messages[0].mutable_spec()->set_evictable(true);
  v1::Buffer buffer;
  ASSERT_TRUE(server.upload(messages, &buffer).ok());
  EXPECT_TRUE(buffer.evictable());
  EXPECT_EQ(buffer.expire_time().seconds() - buffer.create_time().seconds(), 3600);
  const v1::Buffer usual = server.upload("abc");
  EXPECT_FALSE(usual.evictable());
  EXPECT_FALSE(usual.has_expire_time());
}

TEST(Uploads, CountNoMoreOnceTheyHaveEnded) {
  server::Configuration settings = TransferServer::configuration();
  settings.principals = server::Principals({.max_upload_bytes = 1000}, {});
  TransferServer server(host_device(), settings);
  grpc::ClientContext context;
  v1::Buffer buffer;
  const auto begun = server.transfer->WriteBuffer(&context, &buffer);  // so that the client's share stays
  ASSERT_TRUE(begun->Write(server.first(100)));
  ASSERT_TRUE(eventually([&] { return server.reserved_bytes() > 0; }));
  for (int i = 0; i < 3; ++i) {
    v1::Buffer other;
    // The share ends a moment after the answer.
    EXPECT_TRUE(
        eventually([&] { return server.upload(server.messages(std::string(800, 'x')), &other).ok(); }));
  }
  context.TryCancel();
  (void)begun->Finish();
}

TEST(Uploads, AreAnsweredOnceTheirCopiesAreDone) {
  auto owned = staged_device();
  StagedDevice& device = *owned;
  TransferServer server(std::move(owned));
  device.hold();
  v1::Buffer buffer;
  auto answer = std::async(std::launch::async, [&] {
    return server.upload(server.messages(random_bytes(3 * server::kMaxChunkBytes)), &buffer);
  });
  ASSERT_TRUE(eventually([&] { return device.waiting_copies() == 3; }));
  EXPECT_EQ(answer.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  device.release();
  EXPECT_TRUE(answer.get().ok());
  EXPECT_TRUE(server.download(buffer.name()) == random_bytes(3 * server::kMaxChunkBytes));
}

/// A stream of several may end, with its share, before the upload that it has announced.
TEST(Uploads, AnnounceUntilTheyEndThoughTheirStreamsHave) {
  const auto shares = server::TransferShares::create();
  const server::Principal nobody;
  {
    auto announced = shares->announce(nobody, 100, 150);
    ASSERT_TRUE(announced.ok());
    ASSERT_TRUE(shares->begin(nobody).ok());  // and ended
    EXPECT_TRUE(absl::IsUnavailable(shares->announce(nobody, 100, 150).status()));
  }
  EXPECT_TRUE(shares->announce(nobody, 100, 150).ok());
}

/// Has so many buffers that who looks for something to evict holds the sessions' lock for milliseconds.
void add_evictable_buffers(TransferServer& server, int count) {
  auto& sessions = server.runtime.sessions;
  const auto use = sessions.use_session(server.create_session(), {});
  ASSERT_TRUE(use.ok()) << use.status();
  for (int i = 0; i < count; ++i) {
    server::SessionStore::NewBuffer fresh;
    fresh.shape = {v1::UINT8, {0}};
    fresh.admission = sessions.admit(*server.runtime.devices.front().device, use->get(), 0).value();
    fresh.evictable = true;
    ASSERT_TRUE(sessions.add_buffer(*use->get(), std::move(fresh)).ok());
  }
}

/// Uploads that the server has answered with OK, whether or not that reached the client.
std::size_t published_uploads(const TransferServer& server) {
  const PrometheusText metrics(server.runtime.telemetry.text(nullptr));
  const auto count = metrics.find("cumulus_rpc_handled_total", {{"method", "WriteBuffer"}, {"code", "OK"}});
  return static_cast<std::size_t>(count.value_or(0));
}

/// The upload waits for the lock to publish its buffer while its client cancels.
TEST(Uploads, ThatAreCancelledAsTheyArePublishedLeaveNoBuffer) {
  TransferServer server(host_device());
  server.upload("stays, so that the whole budget is never free");
  add_evictable_buffers(server, 20000);
  auto& sessions = server.runtime.sessions;
  std::atomic<bool> done = false;
  std::thread evictions([&] {
    server::Device& device = *server.runtime.devices.front().device;
    while (!done) EXPECT_FALSE(sessions.admit(device, nullptr, TransferServer::kBudget).ok());
  });
  const std::size_t others = sessions.buffer_count() - published_uploads(server);
  std::size_t deleted = 0;
  for (int i = 0; i < 150; ++i) {
    grpc::ClientContext context;
    v1::Buffer buffer;
    const auto upload = server.transfer->WriteBuffer(&context, &buffer);
    for (const v1::WriteBufferRequest& message : server.messages("abc")) (void)upload->Write(message);
    upload->WritesDone();
    std::this_thread::sleep_for(std::chrono::milliseconds(i % 20));
    context.TryCancel();
    if (upload->Finish().ok()) deleted += server.delete_buffer(buffer.name()).ok() ? 1 : 0;
  }
  done = true;
  evictions.join();
  const auto left = [&] { return sessions.buffer_count() + deleted - others; };
  EXPECT_TRUE(eventually([&] { return left() == published_uploads(server); }))
      << left() << " buffers of " << published_uploads(server) << " uploads";
}

}  // namespace
}  // namespace cumulus::testing
