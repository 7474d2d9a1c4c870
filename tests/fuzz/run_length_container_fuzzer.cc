// Bytes as a container: whatever they are, reading them neither fails a sanitizer nor contradicts itself.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "cumulus/run_length_container.h"
#include "library/run_length_layout.h"
#include "proto/checksums.h"

namespace {

using cumulus::Array;
using cumulus::RunLengthContainer;
using namespace cumulus::run_length_layout;
using Bytes = std::vector<std::byte>;

void require(bool condition) {
  if (!condition) std::abort();
}

/// A hostile container may say that it holds more than anybody wants to decode.
constexpr std::int64_t kMostBytes = 1 << 16;

void read_all(const RunLengthContainer& container) {
  const auto unit = static_cast<std::int64_t>(container.element_bytes());
  if (container.elements() > kMostBytes / unit) return;
  const absl::StatusOr<Array> array = container.decode();
  require(array.ok() && container.symbols().ok() && container.counts().ok());
  const std::int64_t step = std::max<std::int64_t>(1, container.elements() / 64);
  for (std::int64_t i = 0; i < container.elements(); i += step) {
    const auto element = container.at(i);
    require(element.ok());
    require(std::memcmp(element->data(), array->bytes().data() + i * unit, container.element_bytes()) == 0);
  }
  const std::int64_t middle = container.elements() / 2;
  const absl::StatusOr<Array> slice = container.slice(middle, container.elements() - middle);
  require(slice.ok());
  require(std::equal(slice->bytes().begin(), slice->bytes().end(), array->bytes().begin() + middle * unit));
  if (container.shape().size() == (container.pixels() ? 3 : 2)) {
    require(container.rectangle(0, 0, container.shape()[0], container.shape()[1])->bytes().size() ==
            array->bytes().size());
  }
}

void parse(const Bytes& bytes) {
  const auto container = RunLengthContainer::parse(bytes);
  if (container.ok()) read_all(*container);
}

/// Without this nothing would get past the checksums.
void make_checksums_right(Bytes& bytes) {
  if (bytes.size() < kHeaderBytes) return;
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  Header header = read_header(bytes);
  const std::span<const std::byte> all(bytes);
  header.version = kVersion;
  header.payload_bytes = bytes.size() - kHeaderBytes;
  header.payload_crc32c = cumulus::crc32c(all.subspan(kHeaderBytes));
  const auto store = [&](std::size_t offset, int size, std::uint64_t value) {
    store_unsigned(value, size, bytes.data() + offset);
  };
  for_each_field(header, store);
  header.header_crc32c = cumulus::crc32c(all.first(kHeaderBytes - 4));
  for_each_field(header, store);
}

/// Bytes as an array: packed, it is read back the same.
void pack_and_read(const Bytes& bytes) {
  Bytes symbols;
  std::vector<std::uint32_t> counts;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i > 0 && bytes[i] == bytes[i - 1]) {
      ++counts.back();
    } else {
      symbols.push_back(bytes[i]);
      counts.push_back(1);
    }
  }
  const auto size = static_cast<std::int64_t>(bytes.size());
  const auto runs = static_cast<std::int64_t>(counts.size());
  const auto packed = cumulus::pack_run_lengths({cumulus::ElementType::kUint8, bytes, {size}},
                                                {cumulus::ElementType::kUint8, symbols, {runs}},
                                                cumulus::ArrayView(counts), false);
  require(packed.ok() && packed->size() <= bytes.size() + kHeaderBytes);
  const auto container = RunLengthContainer::parse(*packed);
  require(container.ok());
  const absl::StatusOr<Array> array = container->decode();
  require(array.ok() && std::equal(bytes.begin(), bytes.end(), array->bytes().begin(), array->bytes().end()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  Bytes bytes(begin, begin + size);
  parse(bytes);
  pack_and_read(bytes);
  make_checksums_right(bytes);
  parse(bytes);
  return 0;
}
