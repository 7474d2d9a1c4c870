#include "cumulus/run_length_container.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "library/run_length_layout.h"
#include "proto/checksums.h"

namespace cumulus {
namespace {

using namespace run_length_layout;

absl::Status bad_container(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("not a run-length container: ", what));
}

absl::Status check_magic(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes) {
    return bad_container(
        absl::StrCat("it has ", bytes.size(), " bytes; the header alone has ", kHeaderBytes));
  }
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    return bad_container("it does not begin with the magic bytes of one");
  }
  return absl::OkStatus();
}

absl::Status check_checksums(std::span<const std::byte> bytes, const Header& header) {
  if (crc32c(bytes.first(kHeaderBytes - 4)) != header.header_crc32c) {
    return bad_container("the header's checksum is wrong; copy the file anew");
  }
  if (header.version != kVersion) {
    return bad_container(
        absl::StrCat("it is of version ", header.version, "; this program reads version ", kVersion));
  }
  const std::size_t payload = bytes.size() - kHeaderBytes;
  if (header.payload_bytes != payload) {
    return bad_container(absl::StrCat("the header is followed by ", payload, " bytes; it says ",
                                      header.payload_bytes, ", so the file was ",
                                      payload < header.payload_bytes ? "cut off" : "extended"));
  }
  if (crc32c(bytes.subspan(kHeaderBytes)) != header.payload_crc32c) {
    return bad_container("the checksum of what follows the header is wrong; copy the file anew");
  }
  return absl::OkStatus();
}

absl::Status check_fields(const Header& header) {
  if (header.element_type < 1 || header.element_type > kElementTypes) {
    return bad_container(
        absl::StrCat("element type ", header.element_type, "; 1 to ", kElementTypes, " are known"));
  }
  const bool raw = (header.flags & kRawFlag) != 0;
  if ((header.flags & ~(kPixelsFlag | kRawFlag)) != 0 || header.order > (raw ? 0 : kColumnOrder)) {
    return bad_container(absl::StrCat("flags ", header.flags, " and order ", header.order,
                                      "; this program knows flags 0 to 3, and orders 0 and, of runs, 1"));
  }
  if (header.extents > kMaxExtents) {
    return bad_container(absl::StrCat(header.extents, " extents; at most ", kMaxExtents, " are right"));
  }
  const bool known_count = header.count_bytes == 1 || header.count_bytes == 2 || header.count_bytes == 4 ||
                           header.count_bytes == 8;
  if (raw ? header.count_bytes != 0 || header.runs != 0 : !known_count) {
    return bad_container(absl::StrCat("counts of ", header.count_bytes, " bytes, ", header.runs,
                                      " runs; 1, 2, 4 or 8 bytes are right, or, of a stored array, no runs"));
  }
  return absl::OkStatus();
}

/// Fills `count` units of `unit` bytes each.
void fill(std::byte* to, std::span<const std::byte> unit, std::int64_t count) {
  const std::size_t bytes = static_cast<std::size_t>(count) * unit.size();
  if (bytes == 0) return;
  std::memcpy(to, unit.data(), unit.size());
  for (std::size_t have = unit.size(); have < bytes; have *= 2)
    std::memcpy(to + have, to, std::min(have, bytes - have));
}

}  // namespace

/// A place in the runs: a run, and how much of it is still to come.
class RunLengthContainer::Cursor {
 public:
  Cursor(const RunLengthContainer& container, std::int64_t position) : container_(container) {
    std::int64_t low = 0;
    std::int64_t high = static_cast<std::int64_t>(container.index_.size() / sizeof(std::uint64_t));
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (container.index_entry(middle) <= static_cast<std::uint64_t>(position) ? low : high) = middle;
    }
    run_ = low * kIndexedRuns;
    auto past = position - static_cast<std::int64_t>(container.index_entry(low));
    for (left_ = next_count(); left_ <= past; left_ = next_count()) {
      past -= left_;
      ++run_;
    }
    left_ -= past;
  }

  std::span<const std::byte> symbol() const {
    const std::size_t bytes = container_.unit_bytes_;
    return container_.symbols_.subspan(static_cast<std::size_t>(run_) * bytes, bytes);
  }
  /// Elements of the run from here on.
  std::int64_t left() const { return left_; }
  void next_run() {
    ++run_;
    left_ = next_count();
  }

 private:
  std::int64_t next_count() const { return static_cast<std::int64_t>(container_.count(run_)); }

  const RunLengthContainer& container_;
  std::int64_t run_ = 0;
  std::int64_t left_ = 0;
};

absl::StatusOr<RunLengthContainer> RunLengthContainer::parse(std::span<const std::byte> bytes) {
  absl::Status status = check_magic(bytes);
  if (!status.ok()) return status;
  const Header header = read_header(bytes);
  status = check_checksums(bytes, header);
  if (status.ok()) status = check_fields(header);
  if (!status.ok()) return status;

  RunLengthContainer container;
  container.type_ = static_cast<ElementType>(header.element_type - 1);
  container.pixels_ = (header.flags & kPixelsFlag) != 0;
  container.raw_ = (header.flags & kRawFlag) != 0;
  container.order_ = header.order == kColumnOrder ? RunOrder::kColumns : RunOrder::kRows;
  container.count_bytes_ = static_cast<int>(header.count_bytes);
  for (std::uint32_t i = 0; i < header.extents; ++i) {
    if (header.shape[i] > kMaxElements) {
      return bad_container(
          absl::StrCat("extent ", i, " is ", header.shape[i], "; at most ", kMaxElements, " is right"));
    }
    container.shape_.push_back(static_cast<std::int64_t>(header.shape[i]));
  }
  const absl::StatusOr<Unit> unit =
      unit_of(container.type_, container.shape_, container.pixels_, container.order_);
  if (!unit.ok()) return bad_container(std::string(unit.status().message()));
  container.unit_bytes_ = unit->bytes;
  container.channels_ = unit->channels;
  container.elements_ = unit->elements;
  container.height_ = unit->height;
  container.width_ = unit->width;

  const std::span<const std::byte> payload = bytes.subspan(kHeaderBytes);
  if (container.raw_) {
    if (payload.size() != static_cast<std::size_t>(unit->elements) * unit->bytes) {
      return bad_container(absl::StrCat(payload.size(), " bytes are stored; the shape needs ", unit->elements,
                                        " times ", unit->bytes));
    }
    container.symbols_ = payload;
    return container;
  }
  if (header.runs > payload.size())
    return bad_container(absl::StrCat(header.runs, " runs do not fit into it"));
  container.runs_ = static_cast<std::int64_t>(header.runs);
  const Sections sections = sections_of(header.runs, header.count_bytes, unit->bytes);
  if (sections.bytes() != payload.size()) {
    return bad_container(absl::StrCat("it holds ", payload.size(), " bytes; its ", header.runs, " runs take ",
                                      sections.bytes()));
  }
  container.index_ = payload.first(sections.index_bytes);
  container.counts_ = payload.subspan(sections.index_bytes, sections.counts_bytes);
  container.symbols_ = payload.subspan(sections.index_bytes + sections.padded_counts_bytes);
  status = container.check_counts();
  if (!status.ok()) return status;
  return container;
}

absl::Status RunLengthContainer::check_counts() const {
  std::uint64_t position = 0;
  for (std::int64_t run = 0; run < runs_; ++run) {
    if (run % kIndexedRuns == 0 && index_entry(run / kIndexedRuns) != position) {
      return bad_container(absl::StrCat("its index says that run ", run, " begins at ",
                                        index_entry(run / kIndexedRuns), "; it begins at ", position));
    }
    const std::uint64_t size = count(run);
    if (size == 0) return bad_container(absl::StrCat("run ", run, " has no elements; at least 1 is right"));
    if (size > static_cast<std::uint64_t>(elements_) - position) {
      return bad_container(absl::StrCat("run ", run, " has ", size, " elements; its shape has only ",
                                        static_cast<std::uint64_t>(elements_) - position, " more"));
    }
    position += size;
  }
  if (position == static_cast<std::uint64_t>(elements_)) return absl::OkStatus();
  return bad_container(absl::StrCat("its runs have ", position, " elements; its shape has ", elements_));
}

std::uint64_t RunLengthContainer::count(std::int64_t run) const {
  return load_unsigned(counts_.data() + run * count_bytes_, count_bytes_);
}

std::uint64_t RunLengthContainer::index_entry(std::int64_t entry) const {
  return load_unsigned(index_.data() + entry * 8, 8);
}

Shape RunLengthContainer::shape_of(std::vector<std::int64_t> extents) const {
  if (pixels_) extents.push_back(channels_);
  return extents;
}

absl::StatusOr<Array> RunLengthContainer::symbols() const {
  absl::StatusOr<Array> array = Array::allocate(type_, shape_of({runs_}));
  if (array.ok() && runs_ > 0)
    std::memcpy(array->mutable_bytes().data(), symbols_.data(), array->bytes().size());
  return array;
}

absl::StatusOr<Array> RunLengthContainer::counts() const {
  absl::StatusOr<Array> array = Array::allocate(ElementType::kUint64, {runs_});
  if (!array.ok()) return array;
  for (std::int64_t run = 0; run < runs_; ++run) {
    const std::uint64_t value = count(run);
    std::memcpy(array->mutable_bytes().data() + run * 8, &value, 8);
  }
  return array;
}

absl::StatusOr<std::span<const std::byte>> RunLengthContainer::at(std::int64_t position) const {
  if (position < 0 || position >= elements_) {
    return absl::OutOfRangeError(
        absl::StrCat("position ", position, "; the container has ", elements_, " elements"));
  }
  if (raw_) return symbols_.subspan(static_cast<std::size_t>(position) * unit_bytes_, unit_bytes_);
  return Cursor(*this, stored_position(position)).symbol();
}

std::int64_t RunLengthContainer::stored_position(std::int64_t position) const {
  if (order_ == RunOrder::kRows) return position;
  const std::int64_t pixel = position % (height_ * width_);
  return position - pixel + pixel % width_ * height_ + pixel / width_;
}

void RunLengthContainer::copy_columns(std::int64_t image, std::int64_t y, std::int64_t x, std::int64_t height,
                                      std::int64_t width, std::byte* to) const {
  std::vector<std::byte> column(static_cast<std::size_t>(height) * unit_bytes_);
  const std::size_t row_bytes = static_cast<std::size_t>(width) * unit_bytes_;
  for (std::int64_t i = 0; i < width; ++i) {
    copy(image + (x + i) * height_ + y, height, column.data());
    std::byte* pixel = to + static_cast<std::size_t>(i) * unit_bytes_;
    for (std::size_t from = 0; from < column.size(); from += unit_bytes_) {
      std::memcpy(pixel, column.data() + from, unit_bytes_);
      pixel += row_bytes;
    }
  }
}

void RunLengthContainer::copy(std::int64_t first, std::int64_t count, std::byte* to) const {
  if (count == 0) return;
  if (raw_) {
    std::memcpy(to, symbols_.data() + static_cast<std::size_t>(first) * unit_bytes_,
                static_cast<std::size_t>(count) * unit_bytes_);
    return;
  }
  Cursor cursor(*this, first);
  while (true) {
    const std::int64_t here = std::min(cursor.left(), count);
    fill(to, cursor.symbol(), here);
    count -= here;
    if (count == 0) return;
    to += static_cast<std::size_t>(here) * unit_bytes_;
    cursor.next_run();
  }
}

absl::StatusOr<Array> RunLengthContainer::slice(std::int64_t first, std::int64_t count) const {
  if (first < 0 || count < 0 || first > elements_ || count > elements_ - first) {
    return absl::OutOfRangeError(
        absl::StrCat(count, " elements from ", first, " on; the container has ", elements_));
  }
  absl::StatusOr<Array> array = Array::allocate(type_, shape_of({count}));
  if (!array.ok()) return array;
  std::byte* to = array->mutable_bytes().data();
  if (order_ == RunOrder::kRows) {
    copy(first, count, to);
    return array;
  }
  for (std::int64_t i = first; i < first + count; ++i) {
    copy(stored_position(i), 1, to);
    to += unit_bytes_;
  }
  return array;
}

absl::StatusOr<Array> RunLengthContainer::rectangle(std::int64_t y, std::int64_t x, std::int64_t height,
                                                    std::int64_t width) const {
  if (shape_.size() != (pixels_ ? 3 : 2)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the container holds an array of ", shape_.size(),
                     " extents; a rectangle is of an image, [height, width] or "
                     "pixels of [height, width, channels]"));
  }
  const auto within = [](std::int64_t first, std::int64_t count, std::int64_t extent) {
    return first >= 0 && count >= 0 && first <= extent && count <= extent - first;
  };
  if (!within(y, height, shape_[0]) || !within(x, width, shape_[1])) {
    return absl::OutOfRangeError(absl::StrCat(height, " x ", width, " pixels from row ", y, ", column ", x,
                                              " on; the image has ", shape_[0], " x ", shape_[1]));
  }
  absl::StatusOr<Array> array = Array::allocate(type_, shape_of({height, width}));
  // An image without columns may have any number of rows, and the other way round.
  if (!array.ok() || height == 0 || width == 0) return array;
  std::byte* to = array->mutable_bytes().data();
  if (order_ == RunOrder::kColumns) {
    copy_columns(0, y, x, height, width, to);
    return array;
  }
  for (std::int64_t row = y; row < y + height; ++row) {
    copy(row * shape_[1] + x, width, to);
    to += static_cast<std::size_t>(width) * unit_bytes_;
  }
  return array;
}

absl::StatusOr<Array> RunLengthContainer::decode() const {
  absl::StatusOr<Array> array = Array::allocate(type_, shape_);
  if (!array.ok() || elements_ == 0) return array;
  std::byte* to = array->mutable_bytes().data();
  if (order_ == RunOrder::kRows) {
    copy(0, elements_, to);
    return array;
  }
  for (std::int64_t image = 0; image < elements_; image += height_ * width_) {
    copy_columns(image, 0, 0, height_, width_, to + static_cast<std::size_t>(image) * unit_bytes_);
  }
  return array;
}

}  // namespace cumulus
