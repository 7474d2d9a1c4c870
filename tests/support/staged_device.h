#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "server/pipeline/errors.h"
#include "server/runtime/device.h"

namespace cumulus::testing {

/// A device whose memory the host must not touch and whose copies happen later, on a thread of their own, as
/// a GPU's do; it can be made to wait and to fail. Its memory is ordinary memory behind another type.
class StagedDevice final : public server::Device {
 public:
  explicit StagedDevice(std::size_t budget_bytes, std::string name = "staged")
      : Device(std::move(name), "a test's", budget_bytes), copier_([this] { copy_in_order(); }) {}
  ~StagedDevice() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      held_ = false;
    }
    changed_.notify_all();
    copier_.join();
  }

  std::string_view backend() const override { return "test"; }
  Space space() const override { return Space::kDevice; }
  std::size_t lanes_of_a_flow() const override { return 1; }
  server::BufferMemory allocate(std::size_t bytes) override {
    auto* block = static_cast<std::byte*>(std::malloc(bytes > 0 ? bytes : 1));
    return DeviceMemory(block, bytes, nullptr, [](void*, std::byte* data, std::size_t) { std::free(data); });
  }
  HostMemory allocate_staging(std::size_t bytes) override { return allocate_host(bytes); }

  void copy_in(std::span<const std::byte> from, const server::BufferMemory& to, std::size_t offset,
               server::Done done) override {
    std::byte* target = to.span<Space::kDevice>().data() + offset;
    copy_later([=] { std::memcpy(target, from.data(), from.size()); }, std::move(done));
  }
  void copy_out(const server::BufferMemory& from, std::size_t offset, std::span<std::byte> to,
                server::Done done) override {
    const std::byte* source = from.span<Space::kDevice>().data() + offset;
    copy_later([=] { std::memcpy(to.data(), source, to.size()); }, std::move(done));
  }
  /// Of a memfd, so that a test maps it as a client maps a GPU's.
  absl::StatusOr<Exported> allocate_exported(std::size_t bytes) override {
    server::Descriptor file(::memfd_create("exported", MFD_CLOEXEC));
    (void)!::ftruncate(file.number(), static_cast<off_t>(bytes));
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return Exported{DeviceMemory(static_cast<std::byte*>(memory), bytes, nullptr,
                                 [](void*, std::byte* data, std::size_t size) { ::munmap(data, size); }),
                    std::move(file)};
  }
  void copy_within(const server::BufferMemory& from, std::size_t offset, const server::BufferMemory& to,
                   std::size_t bytes, server::Done done) override {
    const std::byte* source = from.span<Space::kDevice>().data() + offset;
    std::byte* target = to.span<Space::kDevice>().data();
    copy_later([=] { std::memcpy(target, source, bytes); }, std::move(done));
  }
  void when_done(server::Lane& /*lane*/, absl::Duration /*expected*/, server::Done done) override {
    done(absl::OkStatus());
  }

  /// Copies wait until release().
  void hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void release() {
    {
      const std::lock_guard lock(mutex_);
      held_ = false;
    }
    changed_.notify_all();
  }
  /// The next copy fails.
  void fail_once() {
    const std::lock_guard lock(mutex_);
    failing_ = true;
  }
  std::size_t waiting_copies() {
    const std::lock_guard lock(mutex_);
    return copies_.size();
  }
  /// That were ever asked for.
  std::size_t all_copies() {
    const std::lock_guard lock(mutex_);
    return all_copies_;
  }

 private:
  struct Copy {
    std::function<void()> run;
    server::Done done;
  };

  void copy_later(std::function<void()> run, server::Done done) {
    {
      const std::lock_guard lock(mutex_);
      copies_.push_back({std::move(run), std::move(done)});
      ++all_copies_;
    }
    changed_.notify_all();
  }

  void copy_in_order() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return !held_ && (stopping_ || !copies_.empty()); });
      if (copies_.empty()) return;
      Copy copy = std::move(copies_.front());
      copies_.pop_front();
      const bool fails = std::exchange(failing_, false);
      lock.unlock();
      if (!fails) copy.run();
      copy.done(fails ? server::device_fault("the copy failed") : absl::OkStatus());
      copy = {};  // what it holds may bring the next copy
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Copy> copies_;
  std::size_t all_copies_ = 0;
  bool held_ = false;
  bool failing_ = false;
  bool stopping_ = false;
  std::thread copier_;
};

}  // namespace cumulus::testing
