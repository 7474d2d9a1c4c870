#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <utility>

#include "cumulus/run_length_container.h"
#include "library/run_length_layout.h"
#include "proto/checksums.h"

namespace cumulus {
namespace run_length_layout {

namespace {

absl::Status find_image(const Shape& shape, bool pixels, RunOrder order, Unit& unit) {
  const std::size_t extents = shape.size() - (pixels ? 1 : 0);
  if (extents >= 2) {
    unit.height = shape[extents - 2];
    unit.width = shape[extents - 1];
    return absl::OkStatus();
  }
  if (order == RunOrder::kRows) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("columns of shape [", absl::StrJoin(shape, ", "), "]; [..., height, width] is right"));
}

}  // namespace

absl::StatusOr<Unit> unit_of(ElementType type, const Shape& shape, bool pixels, RunOrder order) {
  const absl::StatusOr<std::int64_t> elements = element_count(shape);
  if (!elements.ok()) return elements.status();
  Unit unit{element_bytes(type), 1, *elements, 0, 0};
  if (static_cast<std::uint64_t>(*elements) > kMaxElements) {
    return absl::InvalidArgumentError(
        absl::StrCat("an array of ", *elements, " elements; at most 2^58 are right"));
  }
  if (!pixels) {
    const absl::Status image = find_image(shape, pixels, order, unit);
    if (!image.ok()) return image;
    return unit;
  }
  if (shape.size() < 2 || shape.back() < 1 || shape.back() > 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("pixels of shape [", absl::StrJoin(shape, ", "),
                     "]; two extents or more, the last of 1 to 4 channels, are right"));
  }
  unit.channels = shape.back();
  unit.bytes *= static_cast<std::size_t>(unit.channels);
  unit.elements /= unit.channels;
  const absl::Status image = find_image(shape, pixels, order, unit);
  if (!image.ok()) return image;
  return unit;
}

}  // namespace run_length_layout

namespace {

using namespace run_length_layout;

/// The counts of an array's runs, as they came.
class Counts {
 public:
  explicit Counts(const ArrayView& counts)
      : bytes_(counts.bytes()), width_(counts.type() == ElementType::kUint32 ? 4 : 8) {}

  std::size_t size() const { return bytes_.size() / static_cast<std::size_t>(width_); }
  std::uint64_t operator[](std::size_t run) const {
    return load_unsigned(bytes_.data() + run * static_cast<std::size_t>(width_), width_);
  }

 private:
  std::span<const std::byte> bytes_;
  int width_;
};

constexpr std::uint64_t most_of(int count_bytes) {
  return count_bytes == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * count_bytes)) - 1;
}

/// Stored runs that a run of `count` becomes where counts have so many bytes.
std::uint64_t pieces(std::uint64_t count, int count_bytes) {
  const std::uint64_t most = most_of(count_bytes);
  return count / most + (count % most != 0 ? 1 : 0);
}

/// How to store the runs in the fewest bytes.
struct Choice {
  int count_bytes = 8;
  std::uint64_t runs = 0;
  Sections sections = {};
};

Choice choose(const Counts& counts, std::size_t unit_bytes) {
  Choice best;
  for (const int count_bytes : {1, 2, 4, 8}) {
    std::uint64_t runs = 0;
    for (std::size_t run = 0; run < counts.size(); ++run) runs += pieces(counts[run], count_bytes);
    const Sections sections = sections_of(runs, static_cast<std::size_t>(count_bytes), unit_bytes);
    if (count_bytes == 1 || sections.bytes() < best.sections.bytes()) best = {count_bytes, runs, sections};
  }
  return best;
}

void write_runs(const Counts& counts, std::span<const std::byte> symbols, std::size_t unit_bytes,
                const Choice& choice, std::byte* payload) {
  std::byte* index = payload;
  std::byte* count_to = payload + choice.sections.index_bytes;
  std::byte* symbol_to = count_to + choice.sections.padded_counts_bytes;
  std::uint64_t position = 0;
  std::int64_t stored = 0;
  for (std::size_t run = 0; run < counts.size(); ++run) {
    for (std::uint64_t left = counts[run]; left > 0;) {
      const std::uint64_t count = std::min(left, most_of(choice.count_bytes));
      if (stored++ % kIndexedRuns == 0) {
        store_unsigned(position, 8, index);
        index += 8;
      }
      store_unsigned(count, choice.count_bytes, count_to);
      count_to += choice.count_bytes;
      std::memcpy(symbol_to, symbols.data() + run * unit_bytes, unit_bytes);
      symbol_to += unit_bytes;
      position += count;
      left -= count;
    }
  }
}

void finish_header(Header& header, std::vector<std::byte>& bytes) {
  const std::span<const std::byte> payload = std::span<const std::byte>(bytes).subspan(kHeaderBytes);
  header.payload_bytes = payload.size();
  header.payload_crc32c = crc32c(payload);
  const auto store = [&] {
    for_each_field(header, [&](std::size_t offset, int size, std::uint64_t value) {
      store_unsigned(value, size, bytes.data() + offset);
    });
  };
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  store();
  header.header_crc32c = crc32c(std::span<const std::byte>(bytes).first(kHeaderBytes - 4));
  store();
}

absl::Status check_runs(const ArrayView& array, const Unit& unit, const ArrayView& symbols,
                        const ArrayView& counts) {
  if (array.bytes().size() != static_cast<std::size_t>(unit.elements) * unit.bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the array has ", array.bytes().size(),
                                                   " bytes; its shape says ", unit.elements, " times ",
                                                   unit.bytes));
  }
  if (counts.type() != ElementType::kUint32 && counts.type() != ElementType::kUint64) {
    return absl::InvalidArgumentError(
        absl::StrCat("counts are ", std::string(element_name(counts.type())), "; uint32 or uint64 is right"));
  }
  const Counts each(counts);
  if (symbols.type() != array.type() || symbols.bytes().size() != each.size() * unit.bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the symbols have ", symbols.bytes().size(), " bytes; ",
                                                   each.size(), " times ", unit.bytes,
                                                   " of the array's type are right"));
  }
  std::uint64_t left = static_cast<std::uint64_t>(unit.elements);
  for (std::size_t run = 0; run < each.size(); ++run) {
    if (each[run] > left)
      return absl::InvalidArgumentError("the counts add up to more than the array's elements");
    left -= each[run];
  }
  if (left == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the counts add up to ", left, " less than the array's elements"));
}

}  // namespace

absl::StatusOr<std::vector<std::byte>> pack_run_lengths(const ArrayView& array, const ArrayView& symbols,
                                                        const ArrayView& counts, bool pixels,
                                                        RunOrder order) {
  const absl::StatusOr<Unit> unit = unit_of(array.type(), array.shape(), pixels, order);
  if (!unit.ok()) return unit.status();
  if (array.shape().size() > kMaxExtents) {
    return absl::InvalidArgumentError(absl::StrCat("the array has ", array.shape().size(),
                                                   " extents; at most ", kMaxExtents, " can be stored"));
  }
  if (absl::Status status = check_runs(array, *unit, symbols, counts); !status.ok()) return status;

  Header header;
  header.element_type = static_cast<std::uint32_t>(array.type()) + 1;
  header.flags = pixels ? kPixelsFlag : 0;
  header.extents = static_cast<std::uint32_t>(array.shape().size());
  std::copy(array.shape().begin(), array.shape().end(), header.shape.begin());
  const Counts each(counts);
  const Choice choice = choose(each, unit->bytes);
  std::vector<std::byte> bytes;
  if (choice.sections.bytes() < array.bytes().size()) {
    header.count_bytes = static_cast<std::uint32_t>(choice.count_bytes);
    header.runs = choice.runs;
    header.order = order == RunOrder::kColumns ? kColumnOrder : 0;
    bytes.resize(kHeaderBytes + choice.sections.bytes());
    write_runs(each, symbols.bytes(), unit->bytes, choice, bytes.data() + kHeaderBytes);
  } else {
    header.flags |= kRawFlag;
    bytes.resize(kHeaderBytes);
    bytes.insert(bytes.end(), array.bytes().begin(), array.bytes().end());
  }
  finish_header(header, bytes);
  return bytes;
}

}  // namespace cumulus
