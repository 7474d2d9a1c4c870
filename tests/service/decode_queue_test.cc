#include "server/runtime/decode/decode_queue.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

namespace cumulus::server {
namespace {

constexpr DecodeQueue::Limits kLimits{
    .threads = 2, .threads_per_client = 1, .max_waiting = 6, .max_waiting_per_client = 4};

/// Tasks that run until they are let go, and what has run so far.
class Bench {
 public:
  DecodeQueue::Task held(const std::string& name) {
    return {[this, name] {
              std::unique_lock lock(mutex_);
              order_.push_back(name);
              changed_.notify_all();
              changed_.wait(lock, [this] { return released_; });
            },
            [] { return false; }};
  }
  DecodeQueue::Task quick(const std::string& name) {
    return {[this, name] {
              const std::lock_guard lock(mutex_);
              order_.push_back(name);
              changed_.notify_all();
            },
            [] { return false; }};
  }
  /// Waits until so many have begun.
  std::vector<std::string> await(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return order_.size() >= count; });
    return order_;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> order_;
  bool released_ = false;
};

TEST(DecodeQueue, AClientHasItsShareOfTheThreads) {
  Bench bench;
  DecodeQueue queue(kLimits);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(queue.post("hog", bench.held("hog")).ok());
  EXPECT_EQ(bench.await(1), (std::vector<std::string>{"hog"}));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(queue.post("other", bench.quick("other")).ok());
  EXPECT_EQ(bench.await(4), (std::vector<std::string>{"hog", "other", "other", "other"}));
  bench.release();
}

TEST(DecodeQueue, ClientsTakeTurns) {
  Bench bench;
  DecodeQueue::Limits limits = kLimits;
  limits.threads = 1;
  DecodeQueue queue(limits);
  ASSERT_TRUE(queue.post("a", bench.held("a")).ok());
  bench.await(1);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(queue.post("a", bench.quick("a")).ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(queue.post("b", bench.quick("b")).ok());
  bench.release();
  EXPECT_EQ(bench.await(5), (std::vector<std::string>{"a", "b", "a", "b", "a"}));
}

TEST(DecodeQueue, ClientsTakeTurnsOnThreadsThatComeFreeTogether) {
  Bench first;
  Bench then;
  DecodeQueue::Limits limits = kLimits;
  limits.threads_per_client = 2;
  DecodeQueue queue(limits);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(queue.post("before", first.held("before")).ok());
  first.await(2);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(queue.post("a", then.held("a")).ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(queue.post("b", then.held("b")).ok());
  first.release();
  std::vector<std::string> running = then.await(2);
  std::sort(running.begin(), running.end());
  EXPECT_EQ(running, (std::vector<std::string>{"a", "b"}));
  then.release();
}

TEST(DecodeQueue, AFullQueueRefusesItsOwnerOnly) {
  Bench bench;
  DecodeQueue queue(kLimits);
  ASSERT_TRUE(queue.post("hog", bench.held("hog")).ok());
  bench.await(1);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(queue.post("hog", bench.held("hog")).ok());
  const absl::Status refused = queue.post("hog", bench.held("hog"));
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(refused.message(),
            "images of 4 calls of this client wait to be decoded, which is the limit "
            "(max_decode_queue_per_client); try again later");
  EXPECT_TRUE(queue.post("other", bench.quick("other")).ok());
  EXPECT_EQ(bench.await(2).back(), "other");
  bench.release();
}

TEST(DecodeQueue, IsBoundedAsAWhole) {
  Bench bench;
  DecodeQueue queue(kLimits);
  for (const char* client : {"a", "b"}) ASSERT_TRUE(queue.post(client, bench.held(client)).ok());
  bench.await(2);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(queue.post(absl::StrCat("c", i), bench.quick("c")).ok());
  EXPECT_EQ(queue.post("d", bench.quick("d")).message(),
            "images of 6 calls wait to be decoded, which is the limit (max_decode_queue); try again later");
  bench.release();
}

TEST(DecodeQueue, WhatNobodyWantsMakesRoom) {
  Bench bench;
  DecodeQueue queue(kLimits);
  ASSERT_TRUE(queue.post("hog", bench.held("hog")).ok());
  bench.await(1);
  for (int i = 0; i < 4; ++i) {
    DecodeQueue::Task task = bench.quick("gone");
    task.unwanted = [] { return true; };
    ASSERT_TRUE(queue.post("hog", std::move(task)).ok());
  }
  EXPECT_TRUE(queue.post("hog", bench.quick("new")).ok());
  EXPECT_EQ(bench.await(5), (std::vector<std::string>{"hog", "gone", "gone", "gone", "gone"}));
  bench.release();
  EXPECT_EQ(bench.await(6).back(), "new");
}

}  // namespace
}  // namespace cumulus::server
