#pragma once

#include <memory>
#include <utility>

namespace cumulus::server {

/// A part of what `Owner` counts, until this ends; then it is given back (Owner::give_back). Move-only.
template <class Owner, class Part>
class Share {
 public:
  /// Of nothing.
  Share() = default;
  Share(std::shared_ptr<Owner> owner, Part part) : owner_(std::move(owner)), part_(std::move(part)) {}
  Share(Share&&) noexcept = default;
  Share& operator=(Share&& other) noexcept {
    if (this != &other) {
      end();
      owner_ = std::move(other.owner_);
      part_ = std::move(other.part_);
    }
    return *this;
  }
  ~Share() { end(); }

  Part& part() { return part_; }

 private:
  void end() {
    const std::shared_ptr<Owner> owner = std::move(owner_);  // which outlives its own lock
    if (owner != nullptr) owner->give_back(part_);
  }

  std::shared_ptr<Owner> owner_;
  Part part_ = {};
};

}  // namespace cumulus::server
