#include "cumulus/coco_masks.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>

namespace cumulus {
namespace {

// A length, or the difference to the length two places before it, is written in groups of five bits, the
// lowest first, each in one character from '0' on. Bit 5 says that another group follows; bit 4 of the last
// group is the number's sign.
constexpr int kGroupBits = 5;
constexpr unsigned kGroupMask = 31;
constexpr unsigned kSignBit = 16;
constexpr unsigned kMoreBit = 32;
constexpr char kZero = '0';
/// Differences of 32-bit lengths have 33 bits with their sign.
constexpr int kMostGroups = 7;
/// The first lengths are written as they are.
constexpr std::size_t kPlainCounts = 3;

constexpr std::int64_t kMaxCount = std::numeric_limits<std::uint32_t>::max();

void append_number(std::int64_t value, std::string& text) {
  while (true) {
    const auto group = static_cast<unsigned>(value) & kGroupMask;
    value >>= kGroupBits;
    const bool last = value == ((group & kSignBit) != 0 ? -1 : 0);
    text.push_back(static_cast<char>(static_cast<unsigned>(kZero) + group + (last ? 0 : kMoreBit)));
    if (last) return;
  }
}

absl::Status bad_text(std::size_t place, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("not a COCO mask: at character ", place, " ", what));
}

/// Reads the number at `place` and moves behind it.
absl::StatusOr<std::int64_t> read_number(std::string_view text, std::size_t& place) {
  const std::size_t begin = place;
  std::int64_t value = 0;
  for (int groups = 0; groups < kMostGroups; ++groups) {
    if (place == text.size()) return bad_text(begin, "a number is cut off");
    const int digit = text[place] - kZero;
    if (digit < 0 || digit > 63) {
      return bad_text(place, absl::StrCat("there is byte ", static_cast<unsigned char>(text[place]),
                                          "; '0' to 'o' are right"));
    }
    ++place;
    const auto group = static_cast<unsigned>(digit);
    value |= static_cast<std::int64_t>(group & kGroupMask) << (groups * kGroupBits);
    if ((group & kMoreBit) != 0) continue;
    if ((group & kSignBit) != 0) value -= std::int64_t{1} << ((groups + 1) * kGroupBits);
    return value;
  }
  return bad_text(begin, absl::StrCat("a number has more than ", kMostGroups, " characters"));
}

absl::Status in_mask(std::size_t mask, const absl::Status& status) {
  return {status.code(), absl::StrCat("mask ", mask, ": ", std::string(status.message()))};
}

/// One mask's runs as its lengths, zeros first.
absl::StatusOr<std::vector<std::uint32_t>> counts_of_runs(std::span<const std::uint8_t> symbols,
                                                          std::span<const std::uint32_t> lengths) {
  std::vector<std::uint32_t> counts;
  counts.reserve(lengths.size() + 1);
  if (!symbols.empty() && symbols.front() != 0) counts.push_back(0);
  for (std::size_t run = 0; run < symbols.size(); ++run) {
    if (symbols[run] > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("it has the value ", symbols[run], "; masks are of zeros and ones"));
    }
    counts.push_back(lengths[run]);
  }
  return counts;
}

template <class T>
absl::StatusOr<std::span<const T>> list_of(const ArrayView& array, const char* name) {
  if (array.type() != element_type_of<T>() || array.bytes().size() % sizeof(T) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is an array of ", std::string(element_name(array.type())), "; ",
                     std::string(element_name(element_type_of<T>())), " is right"));
  }
  return std::span<const T>(reinterpret_cast<const T*>(array.bytes().data()),
                            array.bytes().size() / sizeof(T));
}

}  // namespace

std::string coco_string(std::span<const std::uint32_t> counts) {
  std::string text;
  text.reserve(2 * counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::int64_t before = i < kPlainCounts ? 0 : std::int64_t{counts[i - 2]};
    append_number(std::int64_t{counts[i]} - before, text);
  }
  return text;
}

absl::StatusOr<std::vector<std::uint32_t>> coco_counts(std::string_view text, std::int64_t height,
                                                       std::int64_t width) {
  const absl::StatusOr<std::int64_t> pixels = element_count({height, width});
  if (!pixels.ok()) return pixels.status();
  std::vector<std::uint32_t> counts;
  std::int64_t left = *pixels;
  for (std::size_t place = 0; place < text.size();) {
    const std::size_t begin = place;
    const absl::StatusOr<std::int64_t> number = read_number(text, place);
    if (!number.ok()) return number.status();
    const std::int64_t count =
        *number + (counts.size() < kPlainCounts ? 0 : std::int64_t{counts[counts.size() - 2]});
    if (count < 0 || count > kMaxCount) {
      return bad_text(begin, absl::StrCat("a run has the length ", count, "; 0 to 2^32 - 1 is right"));
    }
    if (count > left) {
      return bad_text(
          begin, absl::StrCat("the runs have more than the ", *pixels, " pixels of ", height, " x ", width));
    }
    left -= count;
    counts.push_back(static_cast<std::uint32_t>(count));
  }
  if (left > 0) {
    return bad_text(text.size(), absl::StrCat("the runs end, with ", left, " of the ", *pixels, " pixels of ",
                                              height, " x ", width, " missing"));
  }
  return counts;
}

std::int64_t coco_area(std::span<const std::uint32_t> counts) {
  std::int64_t area = 0;
  for (std::size_t i = 1; i < counts.size(); i += 2) area += counts[i];
  return area;
}

CocoBox coco_box(std::span<const std::uint32_t> counts, std::int64_t height) {
  std::int64_t left = std::numeric_limits<std::int64_t>::max();
  std::int64_t top = left;
  std::int64_t right = -1;
  std::int64_t bottom = -1;
  std::int64_t position = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::int64_t first = position;
    position += counts[i];
    if (i % 2 == 0 || counts[i] == 0) continue;
    const std::int64_t last = position - 1;
    left = std::min(left, first / height);
    right = std::max(right, last / height);
    const bool one_column = first / height == last / height;  // else it goes over a column's end
    top = std::min(top, one_column ? first % height : 0);
    bottom = std::max(bottom, one_column ? last % height : height - 1);
  }
  if (right < 0) return {};
  return {left, top, right - left + 1, bottom - top + 1};
}

absl::StatusOr<std::vector<std::string>> coco_strings(const ArrayView& symbols, const ArrayView& lengths,
                                                      const ArrayView& first_runs) {
  const auto values = list_of<std::uint8_t>(symbols, "symbols");
  if (!values.ok()) return values.status();
  const auto counts = list_of<std::uint32_t>(lengths, "lengths");
  if (!counts.ok()) return counts.status();
  const auto firsts = list_of<std::int64_t>(first_runs, "first_runs");
  if (!firsts.ok()) return firsts.status();
  const auto runs = static_cast<std::int64_t>(values->size());
  if (counts->size() != values->size() || firsts->empty() || firsts->front() != 0 || firsts->back() != runs ||
      !std::is_sorted(firsts->begin(), firsts->end())) {
    return absl::InvalidArgumentError("symbols, lengths and first_runs are not those of one batch of masks");
  }
  std::vector<std::string> texts;
  texts.reserve(firsts->size() - 1);
  for (std::size_t mask = 0; mask + 1 < firsts->size(); ++mask) {
    const auto first = static_cast<std::size_t>((*firsts)[mask]);
    const std::size_t count = static_cast<std::size_t>((*firsts)[mask + 1]) - first;
    const auto own = counts_of_runs(values->subspan(first, count), counts->subspan(first, count));
    if (!own.ok()) return in_mask(mask, own.status());
    texts.push_back(coco_string(*own));
  }
  return texts;
}

absl::StatusOr<CocoRuns> coco_runs(std::span<const std::string> texts, std::int64_t height,
                                   std::int64_t width) {
  CocoRuns runs;
  for (std::size_t mask = 0; mask < texts.size(); ++mask) {
    const auto counts = coco_counts(texts[mask], height, width);
    if (!counts.ok()) return in_mask(mask, counts.status());
    runs.lengths.insert(runs.lengths.end(), counts->begin(), counts->end());
    for (std::size_t i = 0; i < counts->size(); ++i) runs.symbols.push_back(static_cast<std::uint8_t>(i % 2));
  }
  return runs;
}

}  // namespace cumulus
