#include "server/runtime/session_store.h"

#include <absl/time/clock.h>
#include <gtest/gtest.h>
#include <time.h>

#include <memory>
#include <set>
#include <string>
#include <thread>

namespace cumulus::server {
namespace {

constexpr char kId[] = "6f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e2f";

class SessionStoreTest : public ::testing::Test {
 protected:
  SessionStoreTest() {
    slot_.device = make_cpu_device({.threads = 1, .budget_bytes = 4096, .landing_bytes = 4096});
    slot_.queue = std::make_unique<DeviceQueue>(*slot_.device);
  }

  SessionHandle create(absl::Duration ttl = absl::Minutes(1), std::size_t quota = 4096) {
    auto session = store_.create_session({kId, &slot_, ttl, quota});
    EXPECT_TRUE(session.ok()) << session.status();
    return *session;
  }
  absl::StatusOr<BufferHandle> add(const Session& session, std::size_t bytes, bool evictable = false,
                                   absl::Duration ttl = absl::InfiniteDuration()) {
    auto admission = store_.admit(*slot_.device, &session, bytes);
    if (!admission.ok()) return admission.status();
    SessionStore::NewBuffer fresh;
    fresh.shape = {v1::UINT8, {static_cast<std::int64_t>(bytes)}};
    fresh.admission = *std::move(admission);
    fresh.memory = slot_.device->allocate(bytes);
    fresh.evictable = evictable;
    fresh.ttl = ttl;
    return store_.add_buffer(session, std::move(fresh));
  }
  std::size_t reserved() const { return slot_.device->budget()->reserved_bytes(); }
  static std::string reason(const absl::Status& status) { return std::string(status.message()); }

  DeviceSlot slot_;
  SessionStore store_{{.max_sessions = 2, .max_buffers_per_session = 3}};
};

TEST_F(SessionStoreTest, ASecondSessionOfTheSameNameIsRefused) {
  create();
  EXPECT_EQ(store_.create_session({kId, &slot_, absl::Minutes(1), 1}).status().code(),
            absl::StatusCode::kAlreadyExists);
}

TEST_F(SessionStoreTest, RefusesMoreSessionsThanItsLimit) {
  create();
  ASSERT_TRUE(store_.create_session({"b", &slot_, absl::Minutes(1), 1}).ok());
  EXPECT_EQ(store_.create_session({"c", &slot_, absl::Minutes(1), 1}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(SessionStoreTest, DeletingASessionGivesItsMemoryBack) {
  const auto session = create();
  ASSERT_TRUE(add(*session, 1000).ok());
  EXPECT_EQ(reserved(), 1000u);
  ASSERT_TRUE(store_.delete_session(session->name, {}).ok());
  EXPECT_EQ(reserved(), 0u);
  EXPECT_EQ(store_.find_session(session->name, {}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SessionStoreTest, ABufferInUseOutlivesItsDeletion) {
  const auto session = create();
  auto buffer = add(*session, 1000);
  ASSERT_TRUE(buffer.ok());
  ASSERT_TRUE(store_.delete_buffer((*buffer)->name, {}).ok());
  EXPECT_EQ(store_.find_buffer((*buffer)->name, {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(reserved(), 1000u) << "somebody still reads it";
  buffer = absl::CancelledError();
  EXPECT_EQ(reserved(), 0u);
}

TEST_F(SessionStoreTest, AnExpiredLeaseEndsTheSessionAndSaysSo) {
  const auto session = create(absl::Seconds(10));
  ASSERT_TRUE(add(*session, 100).ok());
  store_.expire(absl::Now() + absl::Seconds(9));
  ASSERT_TRUE(store_.find_session(session->name, {}).ok()) << "which renews the lease";
  store_.expire(absl::Now() + absl::Seconds(9.9));
  EXPECT_EQ(store_.session_count(), 1u);
  store_.expire(absl::Now() + absl::Seconds(11));
  EXPECT_EQ(store_.session_count(), 0u);
  EXPECT_EQ(reserved(), 0u);
  EXPECT_NE(reason(store_.find_session(session->name, {}).status()).find("expired"), std::string::npos);
}

TEST_F(SessionStoreTest, AsksForALookWhenSomethingMayExpire) {
  Alarm alarm;
  SessionStore store({.max_sessions = 2, .max_buffers_per_session = 3}, &alarm);
  EXPECT_EQ(store.next_due(), absl::InfiniteFuture());
  const absl::Time before = absl::Now();
  ASSERT_TRUE(store.create_session({kId, &slot_, absl::Milliseconds(20), 4096}).ok());
  EXPECT_GE(store.next_due(), before + absl::Milliseconds(20));
  ASSERT_TRUE(alarm.wait());
  EXPECT_GE(absl::Now(), before + absl::Milliseconds(20));
  store.expire(absl::Now());
  EXPECT_EQ(store.session_count(), 0U);
  EXPECT_EQ(store.next_due(), absl::InfiniteFuture());
}

TEST_F(SessionStoreTest, ForgetsTheOldestOfManyEnds) {
  constexpr int kSessions = 5000;
  for (int i = 0; i < kSessions; ++i) {
    ASSERT_TRUE(store_.create_session({std::to_string(i), &slot_, absl::Seconds(1), 1}).ok());
    store_.expire(absl::Now() + absl::Seconds(2));
  }
  EXPECT_NE(reason(store_.find_session("sessions/4999", {}).status()).find("expired"), std::string::npos);
  EXPECT_NE(reason(store_.find_session("sessions/0", {}).status()).find("there is no session"),
            std::string::npos);
}

TEST_F(SessionStoreTest, AnExpiredBufferGoesAndSaysSo) {
  const auto session = create();
  const std::string name = (*add(*session, 100, false, absl::Seconds(5)))->name;
  store_.expire(absl::Now() + absl::Seconds(6));
  EXPECT_EQ(reserved(), 0u);
  EXPECT_NE(reason(store_.find_buffer(name, {}).status()).find("has expired"), std::string::npos);
}

TEST_F(SessionStoreTest, EvictsIdleEvictableBuffersLeastRecentlyUsedFirst) {
  const auto session = create(absl::Minutes(1), 1 << 20);
  const std::string oldest = (*add(*session, 1500, true))->name;
  const std::string kept = (*add(*session, 1500, true))->name;
  ASSERT_TRUE(store_.find_buffer(oldest, {}).ok());
  ASSERT_TRUE(store_.find_buffer(kept, {}).ok());
  ASSERT_TRUE(store_.find_buffer(oldest, {}).ok()) << "now `kept` is the least recently used";
  ASSERT_TRUE(store_.admit(*slot_.device, session.get(), 2000).ok());
  EXPECT_TRUE(store_.find_buffer(oldest, {}).ok());
  EXPECT_NE(reason(store_.find_buffer(kept, {}).status()).find("evicted"), std::string::npos);
}

TEST_F(SessionStoreTest, NeverEvictsWhatIsInUseOrNotMarked) {
  const auto session = create(absl::Minutes(1), 1 << 20);
  const auto used = add(*session, 2000, true);
  ASSERT_TRUE(add(*session, 2000, false).ok());
  EXPECT_EQ(store_.admit(*slot_.device, session.get(), 2000).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(store_.find_buffer((*used)->name, {}).ok());
}

TEST_F(SessionStoreTest, MemoryThatOthersHoldComesLaterAndWhatNeverFitsIsRefused) {
  const auto session = create(absl::Minutes(1), 1 << 20);
  const auto other = store_.create_session({"other", &slot_, absl::Minutes(1), 1 << 20});
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE(add(**other, 3000).ok());
  EXPECT_EQ(store_.admit(*slot_.device, session.get(), 2000).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(store_.admit(*slot_.device, nullptr, 2000).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(store_.admit(*slot_.device, session.get(), 5000).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(store_.admit(*slot_.device, other->get(), 2000).status().code(),
            absl::StatusCode::kResourceExhausted)
      << "only its owner can make room";
}

TEST_F(SessionStoreTest, AnUploadLeavesAsMuchAgainToCallsWhileOthersAreAtWork) {
  const auto session = create(absl::Minutes(1), 1 << 20);
  ASSERT_TRUE(add(*session, 1000).ok());
  EXPECT_TRUE(store_.admit_upload(*slot_.device, *session, 3000).ok()) << "nothing else is under way";
  const auto running = store_.admit(*slot_.device, session.get(), 1000);
  EXPECT_EQ(store_.admit_upload(*slot_.device, *session, 1100).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_TRUE(store_.admit_upload(*slot_.device, *session, 1000).ok());
  EXPECT_EQ(store_.admit_upload(*slot_.device, *session, 3500).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(SessionStoreTest, EvictsNothingWhereThatWouldNotSuffice) {
  const auto session = create(absl::Minutes(1), 1 << 20);
  const std::string kept = (*add(*session, 1000, true))->name;
  const auto running = store_.admit(*slot_.device, session.get(), 2000);
  ASSERT_TRUE(running.ok());
  EXPECT_FALSE(store_.admit(*slot_.device, session.get(), 3000).ok());
  EXPECT_TRUE(store_.find_buffer(kept, {}).ok());
}

TEST_F(SessionStoreTest, ALeaseDoesNotEndBeforeItsUses) {
  create(absl::Seconds(10));
  auto use = store_.use_session(std::string("sessions/") + kId, {});
  ASSERT_TRUE(use.ok());
  store_.expire(absl::Now() + absl::Hours(1));
  EXPECT_EQ(store_.session_count(), 1u);
  use->end();
  store_.expire(absl::Now() + absl::Seconds(9));
  EXPECT_EQ(store_.session_count(), 1u) << "the use has renewed it";
  store_.expire(absl::Now() + absl::Seconds(11));
  EXPECT_EQ(store_.session_count(), 0u);
}

TEST_F(SessionStoreTest, EveryUseAndItsEndRenewTheLease) {
  const auto session = create();
  const auto lease = [&] { return store_.lease_end(*session); };
  const auto wait = [] { absl::SleepFor(absl::Milliseconds(2)); };
  const absl::Time created = lease();
  wait();
  ASSERT_TRUE(store_.find_session(session->name, {}).ok());
  const absl::Time found = lease();
  EXPECT_GT(found, created);
  wait();
  auto use = store_.use_session(session->name, {});
  ASSERT_TRUE(use.ok());
  const absl::Time begun = lease();
  EXPECT_GT(begun, found);
  wait();
  use->end();
  EXPECT_GT(lease(), begun);
}

TEST_F(SessionStoreTest, EvictsNothingOfOtherDevices) {
  DeviceSlot other;
  other.device = make_cpu_device({.threads = 1, .budget_bytes = 4096, .landing_bytes = 4096});
  other.queue = std::make_unique<DeviceQueue>(*other.device);
  const std::string kept = (*add(*create(), 3000, true))->name;
  const auto held = other.device->budget()->reserve(3000);
  ASSERT_TRUE(held.ok());
  const auto session = store_.create_session({"b", &other, absl::Minutes(1), 4096});
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(store_.admit(*other.device, session->get(), 2000).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_TRUE(store_.find_buffer(kept, {}).ok());
}

TEST_F(SessionStoreTest, ASessionsQuotaIsNotExceededWhereTheDeviceHasRoom) {
  const auto session = create(absl::Minutes(1), 2000);
  EXPECT_EQ(add(*session, 2001).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(add(*session, 2000).ok());
}

TEST_F(SessionStoreTest, AClientHasItsShareOfTheSessions) {
  Principal owner{"10.0.0.7", {}};
  owner.limits.max_sessions = 1;
  const auto make = [&](const char* id) {
    return store_.create_session({id, &slot_, absl::Seconds(10), 4096, owner});
  };
  ASSERT_TRUE(make("a").ok());
  const absl::Status refused = make("b").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(reason(refused).find("this client has 1 sessions, its limit (max_sessions)"), std::string::npos);
  EXPECT_TRUE(store_.create_session({"c", &slot_, absl::Minutes(1), 4096, {"other", {}}}).ok());
  ASSERT_TRUE(store_.delete_session("sessions/a", {}).ok());
  ASSERT_TRUE(make("b").ok());
  store_.expire(absl::Now() + absl::Seconds(11));
  EXPECT_TRUE(make("a").ok());
}

TEST_F(SessionStoreTest, ABufferCostsAKibibyteOfItsQuotaAtLeast) {
  const auto session = create(absl::Minutes(1), 2 * SessionStore::kBufferCost);
  const std::string first = (*add(*session, 0))->name;
  ASSERT_TRUE(add(*session, 10).ok());
  EXPECT_EQ(add(*session, 0).status().code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(store_.delete_buffer(first, {}).ok());
  EXPECT_TRUE(add(*session, 0).ok());
  EXPECT_EQ(reserved(), 10u) << "of the device only what it has";
}

TEST_F(SessionStoreTest, EvictsNothingWhereThatDoesNotSuffice) {
  const auto session = create(absl::Minutes(1), 1 << 20);
  const std::string evictable = (*add(*session, 1500, true))->name;
  ASSERT_TRUE(add(*session, 2000, false).ok());
  EXPECT_FALSE(store_.admit(*slot_.device, session.get(), 3000).ok());
  EXPECT_TRUE(store_.find_buffer(evictable, {}).ok());
}

TEST_F(SessionStoreTest, EvictsWithinASessionsOwnQuota) {
  const auto session = create(absl::Minutes(1), 3000);
  const auto other = store_.create_session({"other", &slot_, absl::Minutes(1), 3000});
  ASSERT_TRUE(other.ok());
  const std::string others = (*add(**other, 1000, true))->name;
  const std::string own = (*add(*session, 1500, true))->name;
  ASSERT_TRUE(store_.admit(*slot_.device, session.get(), 2000).ok());
  EXPECT_FALSE(store_.find_buffer(own, {}).ok());
  EXPECT_TRUE(store_.find_buffer(others, {}).ok());
}

/// A buffer of no bytes, for the time `ttl`.
void add_empty(SessionStore& store, const SessionHandle& session, absl::Duration ttl) {
  SessionStore::NewBuffer fresh;
  fresh.shape = {v1::UINT8, {0}};
  fresh.admission = store.admit(*session->slot->device, session.get(), 0).value();
  fresh.ttl = ttl;
  ASSERT_TRUE(store.add_buffer(*session, std::move(fresh)).ok());
}

/// What the thread has had of a processor, which others on the machine do not lengthen.
absl::Duration time_of_this_thread() {
  timespec time{};
  EXPECT_EQ(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
  return absl::DurationFromTimespec(time);
}

TEST(SessionStoreExpiry, TakesTimeForWhatExpiresOnly) {
  constexpr std::size_t kBuffers = 100'000;
  DeviceSlot slot;
  slot.device = make_cpu_device({.threads = 1, .budget_bytes = 4096, .landing_bytes = 4096});
  slot.queue = std::make_unique<DeviceQueue>(*slot.device);
  SessionStore store({.max_sessions = 2, .max_buffers_per_session = kBuffers});
  const auto session =
      store.create_session({kId, &slot, absl::Hours(1), kBuffers * SessionStore::kBufferCost});
  ASSERT_TRUE(session.ok());
  for (std::size_t i = 0; i < kBuffers; ++i)
    add_empty(store, *session, i % 2 == 0 ? absl::Minutes(30) : absl::InfiniteDuration());
  const absl::Duration start = time_of_this_thread();
  for (int i = 0; i < 1000; ++i) store.expire(absl::Now());
  EXPECT_LT(time_of_this_thread() - start, absl::Milliseconds(100));  // a look at each would take seconds
  store.expire(absl::Now() + absl::Minutes(31));
  EXPECT_EQ(store.buffer_count(), kBuffers / 2);
}

TEST(SessionStoreExpiry, OfManyBuffersHoldsNobodyUp) {
  constexpr std::size_t kBuffers = 300'000;
  DeviceSlot slot;
  slot.device = make_cpu_device({.threads = 1, .budget_bytes = 4096, .landing_bytes = 4096});
  slot.queue = std::make_unique<DeviceQueue>(*slot.device);
  SessionStore store({.max_sessions = 2, .max_buffers_per_session = kBuffers});
  const auto session =
      store.create_session({kId, &slot, absl::Hours(1), kBuffers * SessionStore::kBufferCost});
  ASSERT_TRUE(session.ok());
  for (std::size_t i = 0; i < kBuffers; ++i) add_empty(store, *session, absl::Minutes(30));
  std::thread janitor([&] { store.expire(absl::Now() + absl::Minutes(31)); });
  std::set<std::size_t> seen;  // by another, meanwhile
  while (seen.count(0) == 0) seen.insert(store.buffer_count());
  janitor.join();
  EXPECT_GT(seen.size(), 20u) << "of more than a thousand";
}

TEST_F(SessionStoreTest, RefusesMoreBuffersThanItsLimit) {
  const auto session = create();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(add(*session, 1).ok());
  EXPECT_EQ(add(*session, 1).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(reserved(), 3u) << "what was refused is given back";
}

TEST_F(SessionStoreTest, ListsBuffersInPagesByCreation) {
  const auto session = create();
  const std::string first = (*add(*session, 1))->name;
  const std::string second = (*add(*session, 1))->name;
  const std::string third = (*add(*session, 1))->name;
  const auto page = store_.list_buffers(session->name, 2, "", {});
  ASSERT_TRUE(page.ok());
  ASSERT_EQ(page->buffers.size(), 2u);
  EXPECT_EQ(page->buffers[0]->name, first);
  EXPECT_EQ(page->buffers[1]->name, second);
  const auto rest = store_.list_buffers(session->name, 2, page->next_page_token, {});
  ASSERT_TRUE(rest.ok());
  ASSERT_EQ(rest->buffers.size(), 1u);
  EXPECT_EQ(rest->buffers[0]->name, third);
  EXPECT_EQ(rest->next_page_token, "");
  EXPECT_EQ(store_.list_buffers(session->name, 2, "nonsense", {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace cumulus::server
