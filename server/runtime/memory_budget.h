#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace cumulus::server {

class MemoryBudget;

/// Bytes of a budget, held until the reservation ends. Move-only. Keeps its budget alive.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept
      : budget_(std::move(other.budget_)),
        bytes_(std::exchange(other.bytes_, 0)),
        kept_(std::exchange(other.kept_, false)) {}
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation() { release(); }

  std::size_t bytes() const { return bytes_; }
  /// Moves `bytes` of this reservation (at most all of it) into one of their own.
  Reservation split(std::size_t bytes);
  void release();
  /// Whether the bytes come back only where a client gives them back, rather than at a call's end.
  void set_kept(bool kept);

 private:
  friend class MemoryBudget;
  Reservation(std::shared_ptr<MemoryBudget> budget, std::size_t bytes)
      : budget_(std::move(budget)), bytes_(bytes) {}

  std::shared_ptr<MemoryBudget> budget_;
  std::size_t bytes_ = 0;
  bool kept_ = false;
};

/// A limit on memory, of a device or of a session, that is never exceeded. Thread-safe.
class MemoryBudget : public std::enable_shared_from_this<MemoryBudget> {
 public:
  /// `subject` names what the bytes are of, in errors: "device:cuda0", "session:...".
  static std::shared_ptr<MemoryBudget> create(std::string subject, std::size_t limit_bytes);

  /// RESOURCE_EXHAUSTED where `bytes` do not fit now; the text says whether they ever can.
  absl::StatusOr<Reservation> reserve(std::size_t bytes);

  const std::string& subject() const { return subject_; }
  std::size_t limit_bytes() const { return limit_; }
  std::size_t reserved_bytes() const;
  /// Of them, those that no call's end gives back: of buffers.
  std::size_t kept_bytes() const;
  /// As reserve says it of what does not fit.
  absl::Status shortage(std::size_t bytes) const;
  /// The most that was ever reserved at once.
  std::size_t high_water_bytes() const;

 private:
  friend class Reservation;
  MemoryBudget(std::string subject, std::size_t limit_bytes)
      : subject_(std::move(subject)), limit_(limit_bytes) {}
  void give_back(std::size_t bytes, bool kept);
  void count_kept(std::size_t bytes, bool kept);
  absl::Status shortage_locked(std::size_t bytes) const;

  const std::string subject_;
  const std::size_t limit_;
  mutable std::mutex mutex_;
  std::size_t reserved_ = 0;
  std::size_t kept_ = 0;
  std::size_t high_water_ = 0;
};

}  // namespace cumulus::server
