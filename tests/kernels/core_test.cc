#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "kernels/core/call_tags.h"
#include "kernels/core/fresh_pages.h"
#include "kernels/core/kept_blocks.h"
#include "kernels/core/parallel.h"
#include "kernels/core/row_pieces.h"
#include "kernels/core/slice.h"
#include "tests/support/executors.h"
#include "tests/support/fresh_regions.h"

namespace cumulus {
namespace {

template <class Backend>
class Executor : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(Executor, testing::Backends, testing::BackendNames);

TYPED_TEST(Executor, BringsBackWhatWasUploaded) {
  const std::vector<float> values = {1, 2, 3, 4, 5};
  testing::BackendArray<TypeParam, float> array(this->backend(), values);
  EXPECT_EQ(array.to_host(), values);
}

TYPED_TEST(Executor, CopiesWithinItsMemory) {
  std::vector<std::byte> bytes(3000001);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 251);
  testing::BackendArray<TypeParam, std::byte> from(this->backend(), bytes);
  testing::BackendArray<TypeParam, std::byte> to(this->backend(), bytes.size());
  this->executor().copy(from.const_span(), to.span());
  EXPECT_TRUE(to.to_host() == bytes);
}

TYPED_TEST(Executor, ScratchPiecesAreAlignedAndApart) {
  auto& executor = this->executor();
  executor.reserve_scratch(ScratchSize().add<float>(3).add<char>(1).bytes());
  const auto first = executor.template scratch<float>(3);
  const auto second = executor.template scratch<char>(1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.data()) % kBlockAlignment, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second.data()) % kBlockAlignment, 0u);
  EXPECT_NE(static_cast<const void*>(first.data()), static_cast<const void*>(second.data()));
}

TYPED_TEST(Executor, RefusesMoreScratchThanWasReserved) {
  auto& executor = this->executor();
  executor.reserve_scratch(256);
  executor.template scratch<char>(200);
  EXPECT_THROW(executor.template scratch<char>(1), std::logic_error);
}

TYPED_TEST(Executor, ThrowsBetweenKernelsWhenInterrupted) {
  struct Always : Interrupt {
    bool requested() const override { return true; }
  } always;
  auto& executor = this->executor();
  EXPECT_NO_THROW(executor.check_interrupt());
  executor.set_interrupt(&always);
  EXPECT_THROW(executor.check_interrupt(), Interrupted);
}

TEST(CallTags, AskForClearingOnceAndWhenTheyBeginAgain) {
  CallTags tags(0);
  EXPECT_TRUE(tags.next().clear);
  EXPECT_TRUE(tags.next().clear) << "until the call has been taken";
  tags.take(tags.next());
  EXPECT_FALSE(tags.next().clear);
  EXPECT_EQ(tags.next().tag, 2u);

  CallTags last(UINT32_MAX - 1);
  EXPECT_EQ(last.next().tag, UINT32_MAX);
  EXPECT_FALSE(last.next().clear);
  last.take(last.next());
  EXPECT_EQ(last.next().tag, 1u) << "0 is what words are cleared to";
  EXPECT_TRUE(last.next().clear) << "words of the first calls may still be there";
  last.take(last.next());
  EXPECT_FALSE(last.next().clear);
}

TEST(CallTags, AreGivenSeveralAtOnce) {
  CallTags tags(0);
  EXPECT_EQ(tags.next(5).tag, 1u);
  tags.take(tags.next(5));
  EXPECT_EQ(tags.next().tag, 6u);

  CallTags last(UINT32_MAX - 4);
  EXPECT_EQ(last.next(4).last, UINT32_MAX);
  EXPECT_FALSE(last.next(4).clear);
  EXPECT_EQ(last.next(5).tag, 1u) << "a call's tags follow one another";
  EXPECT_EQ(last.next(5).last, 5u);
  EXPECT_TRUE(last.next(5).clear);
}

TEST(ParallelRanges, CoverEveryIndexOnce) {
  CpuExecutor executor(3);
  std::vector<std::atomic<int>> visits(10007);
  parallel_ranges(executor, 10007, 16, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) ++visits[static_cast<std::size_t>(i)];
  });
  for (const auto& count : visits) ASSERT_EQ(count.load(), 1);
}

struct CountedTurns final : Turns {
  void yield() override {
    ++yields;
    others_first = false;
  }
  bool wanted() const override { return others_first; }
  int yields = 0;
  std::atomic<bool> others_first = false;
};

TEST(Slices, CoverEveryIndexOnceAndEndWhileTheLoopGoesOn) {
  CpuExecutor executor(3);
  CountedTurns turns;
  const SlicedCall sliced(turns);
  std::vector<std::atomic<int>> visits(2000);
  parallel_ranges(executor, 2000, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      ++visits[static_cast<std::size_t>(i)];
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  for (const auto& count : visits) ASSERT_EQ(count.load(), 1);
  EXPECT_GE(turns.yields, 3);
}

TEST(Slices, EndEarlyForACallThatGoesFirstAndCoverEveryIndexOnce) {
  CpuExecutor executor(3);
  CountedTurns turns;
  const SlicedCall sliced(turns);
  std::vector<std::atomic<int>> visits(3000);
  std::atomic<int> done = 0;
  parallel_ranges(executor, 3000, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      ++visits[static_cast<std::size_t>(i)];
      if (++done % 10 == 0) turns.others_first = true;
    }
  });
  for (const auto& count : visits) ASSERT_EQ(count.load(), 1);
  EXPECT_GE(turns.yields, 30) << "a slice has tens of indices before one gives way";
}

TEST(Slices, OfALoopWithinALoopAreTheOuterOnes) {
  CpuExecutor executor(2);
  CountedTurns turns;
  const SlicedCall sliced(turns);
  std::atomic<int> visits = 0;
  parallel_ranges(executor, 4, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
      parallel_ranges(executor, 100, 1,
                      [&](std::int64_t from, std::int64_t to) { visits += static_cast<int>(to - from); });
  });
  EXPECT_EQ(visits, 400);
  EXPECT_LE(turns.yields, 4) << "no thread of the pool waits for its turn";
}

TEST(Slices, OfACallThatNobodyWantsDoNotBegin) {
  struct Always final : Interrupt {
    bool requested() const override { return true; }
  } always;
  CpuExecutor executor(2);
  executor.set_interrupt(&always);
  std::atomic<int> visits = 0;
  const auto loop = [&] { parallel_ranges(executor, 100, 1, [&](std::int64_t, std::int64_t) { ++visits; }); };
  EXPECT_THROW(loop(), Interrupted);
  CountedTurns turns;
  const SlicedCall sliced(turns);
  EXPECT_THROW(loop(), Interrupted);
  EXPECT_EQ(visits, 0);
}

TEST(Slices, ACallThatIsNotWantedEndsWithinOne) {
  struct Later final : Interrupt {
    bool requested() const override { return std::chrono::steady_clock::now() >= end; }
    std::chrono::steady_clock::time_point end;
  } later;
  CpuExecutor executor(2);
  executor.set_interrupt(&later);
  CountedTurns turns;
  const SlicedCall sliced(turns);
  later.end = std::chrono::steady_clock::now() + std::chrono::milliseconds(30);
  std::atomic<int> visits = 0;
  const auto loop = [&] {
    parallel_ranges(executor, 1000000, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        ++visits;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    });
  };
  EXPECT_THROW(loop(), Interrupted);
  EXPECT_LT(visits, 500000);
}

TEST(TouchedPages, KeepWhatTheyHold) {
  std::vector<std::byte> bytes((std::size_t{9} << 20) + 77);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 251);
  const std::vector<std::byte> before = bytes;
  CpuExecutor executor;
  touch_pages(executor, {bytes.data(), bytes.size()});
  EXPECT_TRUE(bytes == before);
  touch_pages(executor, {bytes.data(), 0});
}

TEST(TouchedPages, AreWrittenToInSlices) {
  const testing::FreshMemory memory(std::size_t{16} << 20);
  CpuExecutor executor(1);
  testing::RegionTurns turns(memory);
  const SlicedCall sliced(turns);
  touch_pages(executor, {memory.data(), std::size_t{16} << 20});
  EXPECT_EQ(memory.written_regions(), 8);
  EXPECT_EQ(turns.most_regions(), 1);
}

TEST(RowPieces, AreEachNumberOnce) {
  CpuExecutor executor;
  for (const std::int64_t numbers : {1, 7, 100, 101, 350}) {
    std::vector<std::atomic<int>> times(static_cast<std::size_t>(30 * numbers));
    parallel_row_pieces(executor, 30, numbers, 100, [&](const RowPiece& piece) {
      EXPECT_LE(piece.end - piece.first, 100);
      for (std::int64_t i = piece.first; i < piece.end; ++i)
        ++times[static_cast<std::size_t>(piece.row * numbers + i)];
    });
    EXPECT_TRUE(std::all_of(times.begin(), times.end(), [](const auto& count) { return count == 1; }))
        << numbers;
  }
}

TEST(KeptBlocks, AreForTheNextOfExactlyTheirSize) {
  KeptBlocks kept;
  int first = 0;
  int second = 0;
  const auto none = [](void*) { FAIL() << "there is room"; };
  kept.keep(256, &first, none);
  kept.keep(512, &second, none);
  EXPECT_EQ(kept.take(1024), nullptr);
  EXPECT_EQ(kept.take(256), &first);
  EXPECT_EQ(kept.take(256), nullptr);
  EXPECT_EQ(kept.take(512), &second);
}

TEST(KeptBlocksCuda, AreToBeHadAlone) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU here: " << cuda_unavailable_reason();
  CudaDevice device(0);
  EXPECT_EQ(device.allocate(1000, kOnlyKept).data(), nullptr);
  CudaExecutor executor(device);
  const std::byte* block = nullptr;
  {
    const DeviceMemory memory = executor.allocate(1000);
    executor.synchronize();
    block = memory.data();
  }
  EXPECT_EQ(device.allocate(2000, kOnlyKept).data(), nullptr);
  EXPECT_EQ(device.allocate(1000, kOnlyKept).data(), block);
}

TEST(KeptBlocks, AreSoManyAndSoLargeAtMost) {
  KeptBlocks kept;
  std::vector<char> blocks(KeptBlocks::kMaxBlocks + 2);
  std::vector<void*> freed;
  const auto free = [&](void* block) { freed.push_back(block); };
  for (std::size_t i = 0; i <= KeptBlocks::kMaxBlocks; ++i) kept.keep(256, &blocks[i], free);
  EXPECT_EQ(freed, std::vector<void*>{&blocks.front()}) << "the oldest";
  kept.keep(KeptBlocks::kMaxBytes, &blocks.back(), free);
  EXPECT_EQ(freed.size(), blocks.size() - 1) << "it takes all room";
  EXPECT_EQ(kept.take(KeptBlocks::kMaxBytes), &blocks.back());
  kept.keep(KeptBlocks::kMaxBytes + 1, &blocks.back(), free);
  EXPECT_EQ(freed.back(), &blocks.back());
  EXPECT_FALSE(kept.free_all(free));
  kept.keep(256, &blocks.front(), free);
  EXPECT_TRUE(kept.free_all(free));
  EXPECT_EQ(kept.take(256), nullptr);
}

TYPED_TEST(Executor, GivesABlockOfTheSameSizeAgain) {
  if constexpr (TypeParam::kSpace == Space::kDevice) {
    const std::byte* const first = this->executor().allocate(100000).data();
    EXPECT_EQ(this->executor().allocate(100000).data(), first);
  }
}

}  // namespace
}  // namespace cumulus
