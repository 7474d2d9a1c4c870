#include "cumulus/run_length_container.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "proto/checksums.h"

#if defined(__SANITIZE_ADDRESS__)
// Without this, a test that asks for a petabyte ends there instead of being told that there is none.
extern "C" const char* __asan_default_options();  // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }  // NOLINT
#endif

namespace cumulus {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<std::byte>;

/// An array of `unit`-byte elements, as symbols of a naive encoding and as a container.
struct Sample {
  Bytes elements;
  Bytes symbols;
  std::vector<std::uint64_t> counts;
  Bytes container;
};

/// Runs of 1 to `longest` elements, each a random byte repeated over the unit.
Sample make_sample(std::size_t unit, std::size_t count, std::uint32_t longest, const Shape& shape,
                   ElementType type, bool pixels) {
  Sample sample;
  std::mt19937 random(7);
  int value = 0;
  for (std::size_t made = 0; made < count;) {
    const std::size_t run = std::min<std::size_t>(count - made, 1 + random() % longest);
    value = (value + 1 + static_cast<int>(random() % 200)) % 256;
    sample.elements.insert(sample.elements.end(), run * unit, static_cast<std::byte>(value));
    sample.symbols.insert(sample.symbols.end(), unit, static_cast<std::byte>(value));
    sample.counts.push_back(run);
    made += run;
  }
  const auto runs = static_cast<std::int64_t>(sample.counts.size());
  const auto packed = pack_run_lengths({type, sample.elements, shape}, {type, sample.symbols, {runs}},
                                       ArrayView(sample.counts), pixels);
  EXPECT_TRUE(packed.ok()) << packed.status();
  if (packed.ok()) sample.container = *packed;
  return sample;
}

Sample image_sample(std::uint32_t longest = 700) {
  return make_sample(3, 120 * 80, longest, {120, 80, 3}, ElementType::kUint8, true);
}

Bytes bytes_of(const absl::StatusOr<Array>& array) {
  EXPECT_TRUE(array.ok()) << array.status();
  return array.ok() ? Bytes(array->bytes().begin(), array->bytes().end()) : Bytes();
}

std::string refusal(const Bytes& container) {
  const auto parsed = RunLengthContainer::parse(container);
  return parsed.ok() ? "accepted" : std::string(parsed.status().message());
}

void set(Bytes& container, std::size_t offset, std::uint64_t value, std::size_t size) {
  std::memcpy(container.data() + offset, &value, size);
}

/// Makes the checksums right again after a change.
void seal(Bytes& container) {
  const std::span<const std::byte> bytes(container);
  set(container, 104, crc32c(bytes.subspan(128)), 4);
  set(container, 124, crc32c(bytes.first(124)), 4);
}

TEST(RunLengthContainer, GivesBackTheArray) {
  for (const std::uint32_t longest : {2u, 10u, 300u, 5000u, 200000u}) {
    for (const std::size_t unit : {1u, 2u, 4u, 8u}) {
      const ElementType type = unit == 1   ? ElementType::kUint8
                               : unit == 2 ? ElementType::kFloat16
                               : unit == 4 ? ElementType::kInt32
                                           : ElementType::kFloat64;
      const Sample sample = make_sample(unit, 100000, longest, {100000}, type, false);
      const auto parsed = RunLengthContainer::parse(sample.container);
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      EXPECT_EQ(parsed->type(), type);
      EXPECT_EQ(parsed->shape(), Shape{100000});
      EXPECT_TRUE(bytes_of(parsed->decode()) == sample.elements);
      EXPECT_LE(sample.container.size(), sample.elements.size() + 128);
    }
  }
}

TEST(RunLengthContainer, GivesBackItsRuns) {
  const Sample sample = image_sample();
  const auto parsed = RunLengthContainer::parse(sample.container);
  ASSERT_TRUE(parsed.ok());
  std::uint64_t total = 0;
  const auto counts = parsed->counts();
  ASSERT_TRUE(counts.ok());
  const std::span<const std::uint64_t> values = *counts->values<std::uint64_t>();
  for (const std::uint64_t count : values) total += count;
  EXPECT_EQ(total, 120u * 80u);
  const auto symbols = parsed->symbols();
  ASSERT_TRUE(symbols.ok());
  EXPECT_EQ(symbols->shape(), (Shape{parsed->runs(), 3}));
}

TEST(RunLengthContainer, StoresWhatDoesNotCompressAsItIs) {
  const Sample sample = make_sample(1, 50000, 1, {50000}, ElementType::kUint8, false);
  EXPECT_EQ(sample.container.size(), 50128u);
  const auto parsed = RunLengthContainer::parse(sample.container);
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(parsed->raw());
  EXPECT_TRUE(bytes_of(parsed->decode()) == sample.elements);
  EXPECT_EQ(parsed->at(777)->front(), sample.elements[777]);
  EXPECT_TRUE(bytes_of(parsed->slice(10, 20)) ==
              Bytes(sample.elements.begin() + 10, sample.elements.begin() + 30));
}

TEST(RunLengthContainer, ReadsEveryElementAlone) {
  for (const std::uint32_t longest : {3u, 700u}) {
    const Sample sample = image_sample(longest);
    const auto parsed = RunLengthContainer::parse(sample.container);
    ASSERT_TRUE(parsed.ok());
    for (std::int64_t i = 0; i < parsed->elements(); ++i) {
      const auto pixel = parsed->at(i);
      ASSERT_TRUE(pixel.ok());
      ASSERT_EQ(std::memcmp(pixel->data(), sample.elements.data() + 3 * i, 3), 0) << i;
    }
    EXPECT_THAT(std::string(parsed->at(9600).status().message()),
                HasSubstr("position 9600; the container has 9600"));
    EXPECT_FALSE(parsed->at(-1).ok());
  }
}

TEST(RunLengthContainer, ReadsSlicesAndRectangles) {
  const Sample sample = image_sample(40);
  const auto parsed = RunLengthContainer::parse(sample.container);
  ASSERT_TRUE(parsed.ok());
  for (const std::int64_t first : {0, 1, 4321, 9600}) {
    for (const std::int64_t count : {0, 1, 257, 5279}) {
      if (first + count > 9600) continue;
      EXPECT_TRUE(bytes_of(parsed->slice(first, count)) ==
                  Bytes(sample.elements.begin() + 3 * first, sample.elements.begin() + 3 * (first + count)));
    }
  }
  const auto rectangle = parsed->rectangle(17, 5, 40, 33);
  ASSERT_TRUE(rectangle.ok());
  EXPECT_EQ(rectangle->shape(), (Shape{40, 33, 3}));
  for (std::int64_t y = 0; y < 40; ++y) {
    ASSERT_EQ(std::memcmp(rectangle->bytes().data() + y * 33 * 3,
                          sample.elements.data() + ((17 + y) * 80 + 5) * 3, 99),
              0);
  }
  EXPECT_EQ(bytes_of(parsed->rectangle(120, 80, 0, 0)).size(), 0u);
  for (const auto& [y, x, h, w] : {std::array{0, 0, 121, 1}, {0, 80, 1, 1}, {-1, 0, 1, 1}, {0, 0, -1, 1}}) {
    EXPECT_THAT(std::string(parsed->rectangle(y, x, h, w).status().message()),
                HasSubstr("the image has 120 x 80"));
  }
  EXPECT_FALSE(parsed->slice(9000, 601).ok());
  EXPECT_FALSE(parsed->slice(-1, 1).ok());
}

/// What no memory holds in full: bytes of 1, then as many of 2, as an image of 2^25 x 2^25.
Bytes petabyte_container() {
  constexpr std::uint64_t kSide = std::uint64_t{1} << 25;
  constexpr std::uint64_t kHalf = kSide * kSide / 2;
  Bytes container = make_sample(1, 8, 8, {8}, ElementType::kUint8, false).container;
  container.resize(128 + 8 + 2 * 8 + 2);  // index, counts, symbols
  set(container, 16, 0, 1);               // no flags: runs
  set(container, 17, 8, 1);               // counts of 8 bytes
  set(container, 19, 2, 1);               // extents
  set(container, 24, 2, 8);               // runs
  set(container, 32, kSide, 8);
  set(container, 40, kSide, 8);
  set(container, 96, container.size() - 128, 8);
  set(container, 128, 0, 8);
  set(container, 136, kHalf, 8);
  set(container, 144, kHalf, 8);
  set(container, 152, 0x0201, 2);
  seal(container);
  return container;
}

TEST(RunLengthContainer, ReadsPartsOfWhatIsTooLargeToDecode) {
  const Bytes container = petabyte_container();
  const auto parsed = RunLengthContainer::parse(container);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  constexpr std::int64_t kSide = std::int64_t{1} << 25;
  constexpr std::int64_t kHalf = kSide * kSide / 2;
  const auto repeated = [](std::size_t ones, std::size_t twos) {
    Bytes bytes(ones, std::byte{1});
    bytes.insert(bytes.end(), twos, std::byte{2});
    return bytes;
  };
  EXPECT_EQ(parsed->elements(), 2 * kHalf);
  EXPECT_EQ(parsed->at(kHalf - 1)->front(), std::byte{1});
  EXPECT_EQ(parsed->at(kHalf)->front(), std::byte{2});
  EXPECT_EQ(bytes_of(parsed->slice(kHalf - 2, 5)), repeated(2, 3));
  EXPECT_EQ(bytes_of(parsed->rectangle(kSide / 2 - 1, kSide - 3, 2, 3)), repeated(3, 3));
  EXPECT_FALSE(parsed->decode().ok());
}

/// Two images of 30 x 20 pixels whose columns are runs, in column order.
Bytes column_container(const Bytes& elements) {
  Bytes symbols;
  std::vector<std::uint64_t> counts;
  for (std::size_t image = 0; image < 2; ++image) {
    for (std::size_t x = 0; x < 20; ++x) {
      const std::byte* pixel = elements.data() + (image * 600 + x) * 3;
      if (x > 0 && std::memcmp(pixel, pixel - 3, 3) == 0) {
        counts.back() += 30;
        continue;
      }
      symbols.insert(symbols.end(), pixel, pixel + 3);
      counts.push_back(30);
    }
  }
  const auto runs = static_cast<std::int64_t>(counts.size());
  const auto packed = pack_run_lengths({ElementType::kUint8, elements, {2, 30, 20, 3}},
                                       {ElementType::kUint8, symbols, {runs, 3}}, ArrayView(counts), true,
                                       RunOrder::kColumns);
  EXPECT_TRUE(packed.ok()) << packed.status();
  return packed.ok() ? *packed : Bytes();
}

TEST(RunLengthContainer, KeepsColumnsAndReadsThemByRows) {
  Bytes elements;
  for (int i = 0; i < 2 * 30 * 20; ++i) {
    const int value = i / 600 * 100 + i % 20 / 2 * 3;
    for (int channel = 0; channel < 3; ++channel) elements.push_back(static_cast<std::byte>(value + channel));
  }
  const Bytes container = column_container(elements);
  const auto parsed = RunLengthContainer::parse(container);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->order(), RunOrder::kColumns);
  EXPECT_TRUE(bytes_of(parsed->decode()) == elements);
  for (std::int64_t i = 0; i < parsed->elements(); ++i) {
    ASSERT_EQ(std::memcmp(parsed->at(i)->data(), elements.data() + 3 * i, 3), 0) << i;
  }
  EXPECT_TRUE(bytes_of(parsed->slice(555, 90)) ==
              Bytes(elements.begin() + 3 * 555, elements.begin() + 3 * 645));
}

TEST(RunLengthContainer, ReadsARectangleOfColumns) {
  const Sample rows = make_sample(1, 60, 20, {6, 10}, ElementType::kUint8, false);
  // The same runs, seen as those of the transposed image.
  const std::vector<std::uint64_t> counts = rows.counts;
  Bytes turned(60);
  for (std::size_t i = 0; i < 60; ++i) turned[i % 10 * 6 + i / 10] = rows.elements[i];
  const auto runs = static_cast<std::int64_t>(counts.size());
  Bytes container =
      *pack_run_lengths({ElementType::kUint8, turned, {10, 6}}, {ElementType::kUint8, rows.symbols, {runs}},
                        ArrayView(counts), false, RunOrder::kColumns);
  const auto parsed = RunLengthContainer::parse(container);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_FALSE(parsed->raw());
  const Bytes rectangle = bytes_of(parsed->rectangle(3, 1, 5, 4));
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(rectangle[i], turned[(3 + i / 4) * 6 + 1 + i % 4]) << i;
  set(container, 19, 1, 1);  // one extent: no columns
  set(container, 32, 60, 8);
  seal(container);
  EXPECT_THAT(refusal(container), HasSubstr("columns of shape [60]; [..., height, width] is right"));
}

TEST(RunLengthContainer, HoldsAnArrayWithoutElements) {
  const Sample sample = make_sample(1, 0, 1, {0, 5}, ElementType::kUint8, false);
  const auto parsed = RunLengthContainer::parse(sample.container);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->elements(), 0);
  EXPECT_EQ(bytes_of(parsed->decode()).size(), 0u);
}

TEST(RunLengthContainer, RefusesEveryTruncationAndEveryFlippedBit) {
  const Sample sample = image_sample();
  for (std::size_t size = 0; size < sample.container.size(); ++size) {
    const Bytes shorter(sample.container.begin(),
                        sample.container.begin() + static_cast<std::ptrdiff_t>(size));
    ASSERT_NE(refusal(shorter), "accepted") << size;
  }
  Bytes longer = sample.container;
  longer.push_back({});
  EXPECT_THAT(refusal(longer), HasSubstr("the file was extended"));
  for (std::size_t bit = 0; bit < 8 * sample.container.size(); ++bit) {
    Bytes flipped = sample.container;
    flipped[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    ASSERT_NE(refusal(flipped), "accepted") << bit;
  }
}

TEST(RunLengthContainer, RefusesHostileFieldsWhoseChecksumsAreRight) {
  const Sample sample = image_sample();
  const auto refusal_with = [&](std::size_t offset, std::uint64_t value, std::size_t size) {
    Bytes hostile = sample.container;
    set(hostile, offset, value, size);
    seal(hostile);
    return refusal(hostile);
  };
  EXPECT_THAT(refusal_with(8, 2, 4), HasSubstr("of version 2"));
  EXPECT_THAT(refusal_with(12, 10, 4), HasSubstr("element type 10"));
  EXPECT_THAT(refusal_with(12, 0, 4), HasSubstr("element type 0"));
  EXPECT_THAT(refusal_with(16, 4, 1), HasSubstr("flags 4"));
  EXPECT_THAT(refusal_with(17, 3, 1), HasSubstr("counts of 3 bytes"));
  EXPECT_THAT(refusal_with(18, 2, 1), HasSubstr("order 2"));
  EXPECT_THAT(refusal_with(19, 9, 1), HasSubstr("9 extents"));
  EXPECT_THAT(refusal_with(19, 1, 1), HasSubstr("pixels of shape [120]"));
  EXPECT_THAT(refusal_with(24, ~std::uint64_t{0}, 8), HasSubstr("runs do not fit"));
  EXPECT_THAT(refusal_with(24, 1, 8), HasSubstr("its 1 runs take"));
  EXPECT_THAT(refusal_with(32, std::uint64_t{1} << 63, 8), HasSubstr("extent 0"));
  EXPECT_NE(refusal_with(32, std::uint64_t{1} << 58, 8), "accepted");
  EXPECT_THAT(refusal_with(32, 121, 8), HasSubstr("its runs have 9600 elements; its shape has 9680"));
  EXPECT_THAT(refusal_with(32, 119, 8), HasSubstr("its shape has only"));
  EXPECT_THAT(refusal_with(48, 5, 8), HasSubstr("pixels of shape [120, 80, 5]"));
  EXPECT_THAT(refusal_with(128, 1, 8), HasSubstr("its index says that run 0 begins at 1"));
}

TEST(RunLengthContainer, RefusesARunOfNothing) {
  Sample sample = make_sample(1, 200, 60, {200}, ElementType::kUint8, false);
  constexpr std::size_t kCounts = 128 + 8;  // of a byte each, behind the header and the index of one entry
  set(sample.container, kCounts, sample.counts[0] + sample.counts[1], 1);
  set(sample.container, kCounts + 1, 0, 1);
  seal(sample.container);
  EXPECT_THAT(refusal(sample.container), HasSubstr("run 1 has no elements; at least 1 is right"));
}

TEST(RunLengthContainer, SurvivesRandomDamageWhoseChecksumsAreRight) {
  const Sample sample = image_sample(20);
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    Bytes hostile = sample.container;
    for (std::uint32_t i = 0; i < 1 + random() % 4; ++i) {
      hostile[random() % (random() % 2 == 0 ? 128 : hostile.size())] = static_cast<std::byte>(random());
    }
    std::memcpy(hostile.data(), sample.container.data(), 12);
    seal(hostile);
    const auto parsed = RunLengthContainer::parse(hostile);
    if (!parsed.ok() || parsed->elements() > 1000000) continue;
    EXPECT_TRUE(parsed->decode().ok());
    EXPECT_EQ(parsed->at(parsed->elements() - 1).ok(), parsed->elements() > 0);
  }
}

TEST(RunLengthContainer, RefusesRunsThatAreNotTheArrays) {
  const Bytes elements(10);
  const Bytes symbols(2);
  const auto text = [&](const std::vector<std::uint32_t>& counts, const Bytes& of) {
    return std::string(pack_run_lengths({ElementType::kUint8, elements, {10}}, {ElementType::kUint8, of, {2}},
                                        ArrayView(counts), false)
                           .status()
                           .message());
  };
  EXPECT_THAT(text({5, 4}, symbols), HasSubstr("1 less than"));
  EXPECT_THAT(text({5, 6}, symbols), HasSubstr("more than the array's elements"));
  EXPECT_THAT(text({5, 5}, elements), HasSubstr("the symbols have 10 bytes; 2 times 1"));
  EXPECT_EQ(text({5, 5}, symbols), "");
}

/// Found by the fuzzer: the rows that an image without columns has cost nothing, and nor do columns without
/// rows.
TEST(RunLengthContainer, ReadsAnEmptyRectangleOfAnyNumberOfRowsAtOnce) {
  constexpr std::int64_t kMany = std::int64_t{1} << 58;
  for (const RunOrder order : {RunOrder::kRows, RunOrder::kColumns}) {
    for (const Shape& shape : {Shape{kMany, 0}, Shape{0, kMany}}) {
      const auto packed =
          pack_run_lengths({ElementType::kUint8, Bytes(), shape}, {ElementType::kUint8, Bytes(), {0}},
                           ArrayView(std::vector<std::uint64_t>()), false, order);
      ASSERT_TRUE(packed.ok()) << packed.status();
      const auto parsed = RunLengthContainer::parse(*packed);
      ASSERT_TRUE(parsed.ok()) << parsed.status();
      const auto rectangle = parsed->rectangle(0, 0, shape[0], shape[1]);
      ASSERT_TRUE(rectangle.ok()) << rectangle.status();
      EXPECT_EQ(rectangle->shape(), shape);
      EXPECT_EQ(rectangle->bytes().size(), 0u);
    }
  }
}

}  // namespace
}  // namespace cumulus
