#include "server/runtime/transfer/staging_ring.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "tests/support/transfer_server.h"

namespace cumulus::testing {
namespace {

using server::StagingRing;
using Use = StagingRing::Use;

class StagingRings : public ::testing::Test {
 protected:
  /// One after another: a slot that comes back goes to the next that waits, into the same vector.
  void TearDown() override {
    for (auto* taken : {&uploads_, &downloads_}) {
      while (!taken->empty()) {
        const StagingRing::Slot last = std::move(taken->back());
        taken->pop_back();
      }
    }
  }
  void acquire(Use use, std::vector<StagingRing::Slot>& taken) {
    ring_->acquire(use, [&taken](StagingRing::Slot slot) { taken.push_back(std::move(slot)); });
  }

  const std::unique_ptr<server::Device> device_ = host_device();
  const std::shared_ptr<StagingRing> ring_ =
      StagingRing::create(*device_, {.slots = 4, .slot_bytes = 1024, .kept_for_uploads = 1});
  std::vector<StagingRing::Slot> uploads_;
  std::vector<StagingRing::Slot> downloads_;
};

TEST_F(StagingRings, KeepSlotsThatReadersCannotTake) {
  for (int i = 0; i < 40; ++i) acquire(Use::kDownload, downloads_);
  EXPECT_EQ(downloads_.size(), 3u);
  acquire(Use::kUpload, uploads_);
  EXPECT_EQ(uploads_.size(), 1u);
  uploads_.clear();
  EXPECT_EQ(downloads_.size(), 3u);
  EXPECT_EQ(ring_->free_slots(), 1u);
}

TEST_F(StagingRings, ServeUploadsBeforeDownloads) {
  for (int i = 0; i < 4; ++i) acquire(Use::kUpload, uploads_);
  acquire(Use::kDownload, downloads_);
  acquire(Use::kUpload, uploads_);
  StagingRing::Slot done = std::move(uploads_.back());
  uploads_.pop_back();
  done.reset();  // which fills uploads_ again
  EXPECT_EQ(uploads_.size(), 4u);
  EXPECT_TRUE(downloads_.empty());
  uploads_.clear();
  EXPECT_EQ(downloads_.size(), 1u);
}

}  // namespace
}  // namespace cumulus::testing
