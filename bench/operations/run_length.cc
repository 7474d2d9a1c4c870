#include "kernels/run_length/run_length.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/baselines/run_length_references.h"
#include "bench/harness/bench.h"
#include "bench/harness/timing.h"
#include "cli/files/image.h"
#include "cli/files/npy.h"
#include "kernels/run_length/element.h"
#include "kernels/run_length/run_length.h"
#include "tests/cases/run_length_case.h"

// Run-length coding of 2^28 elements on a GPU, of 2^24 on the CPU, both ways.

namespace cumulus::bench {
namespace {

using testing::make_run_array;
using testing::RunArray;
using testing::RunPattern;

const std::vector<RunPattern> kPatterns = {RunPattern::kCoin,         RunPattern::kTen,
                                           RunPattern::kAllDifferent, RunPattern::kShortRuns,
                                           RunPattern::kMiddleRuns,   RunPattern::kLongRuns};

/// Bytes of the elements that the CPU's rows have: words, and pixels.
const std::vector<int> kCpuElementBytes = {1, 2, 4, 8, 3, 16};

/// The bytes of a large array are those of a smaller one, again and again: the oracle's work stays small.
constexpr std::int64_t kPatternElements = std::int64_t{1} << 22;

std::string name_of_element(int bytes) {
  if (bytes == 3) return "rgb8";
  if (bytes == 16) return "rgba32";
  return "u" + std::to_string(8 * bytes);
}

std::string name_of_subject(const std::string& way, RunPattern pattern, int element_bytes,
                            int log2_elements) {
  return "run_length/" + way + "-" + name_of_element(element_bytes) + "-" + name_of(pattern) + "/2^" +
         std::to_string(log2_elements);
}

/// The name of the subject that encodes or decodes one array in this way.
using NameOfWay = std::function<std::string(const std::string& way)>;

constexpr const char* kWays[] = {
    "encode", "decode", "encode-cub", "encode-parle", "encode-plain-loop", "decode-plain-loop"};

/// What a reference decodes on the CPU.
struct DecodeArrays {
  const std::byte* symbols;
  const std::uint32_t* counts;
  std::int64_t runs;
  std::byte* elements;
};

/// An array in the executor's memory, and its runs, encoded by the operation itself.
template <class Executor>
class Coding {
 public:
  static constexpr Space kSpace = Executor::kSpace;

  /// `elements`: a power of two times those of the pattern, which is repeated.
  Coding(Executor& executor, RunArray pattern, std::int64_t elements)
      : executor_(executor),
        pattern_(std::move(pattern)),
        params_{.format = {pattern_.element_bytes, 4, RunLengthForm::kCounts},
                .elements = elements,
                .max_runs = elements},
        once_(testing::naive_encode(pattern_, params_.format, 0)),
        symbols_once_(executor, once_.symbols),
        lengths_once_(executor, once_.lengths),
        elements_(executor, bytes_of(params_.elements, pattern_.element_bytes)),
        symbols_(executor, bytes_of(params_.max_runs, pattern_.element_bytes)),
        lengths_(executor, bytes_of(params_.max_runs, 4)),
        decoded_(executor, elements_.size()),
        runs_(executor, sizeof(std::int32_t)),
        reports_(allocate_reports()) {
    const std::size_t once = pattern_.bytes.size();
    executor.upload({pattern_.bytes.data(), once}, elements_.span().subspan(0, once));
    for (std::size_t have = once; have < elements_.size(); have *= 2) {
      executor.copy(elements_.span().subspan(0, have), elements_.span().subspan(have, have));
    }
    executor.reserve_scratch(encode_scratch_bytes());
    encode();
    executor.synchronize();
  }

  std::size_t encode_scratch_bytes() const {
    return encode_run_lengths_scratch_bytes<kSpace>(params_, executor_.numbers());
  }
  std::size_t decode_scratch_bytes() const {
    return decode_run_lengths_scratch_bytes<kSpace>(decode_params());
  }
  std::size_t compulsory_bytes() const {
    return testing::run_length_bytes(params_.format, params_.elements, encoded().runs);
  }
  std::int64_t elements() const { return params_.elements; }
  int element_bytes() const { return params_.format.element_bytes; }
  /// The arrays of `encode`, its own results spoiled, for a reference to fill.
  RunLengthReferenceArrays reference_arrays() {
    const std::size_t spoiled = std::min(elements_.size(), lengths_.size());
    executor_.copy(elements_.span(), symbols_.span());
    executor_.copy(elements_.span().subspan(0, spoiled), lengths_.span().subspan(0, spoiled));
    return {elements_.data(),
            params_.elements,
            params_.format.element_bytes,
            symbols_.data(),
            reinterpret_cast<std::uint32_t*>(lengths_.data()),
            reinterpret_cast<std::int32_t*>(runs_.data())};
  }

  /// The runs that were encoded, and where a reference is to decode them to: not yet what it should be.
  DecodeArrays decode_arrays() requires(kSpace == Space::kHost) {
    std::memset(decoded_.data(), 0xA5, decoded_.size());
    return {symbols_.data(), reinterpret_cast<const std::uint32_t*>(lengths_.data()), encoded().runs,
            decoded_.data()};
  }

  void encode() {
    encode_run_lengths(executor_, params_, elements_.span(), {symbols_.span(), lengths_.span()}, &encoded());
  }
  void decode() {
    const auto params = decode_params();
    decode_run_lengths(executor_, params,
                       symbols_.span().subspan(0, bytes_of(params.runs, params.format.element_bytes)),
                       lengths_.span().subspan(0, bytes_of(params.runs, params.format.length_bytes)),
                       decoded_.span(), &decoded());
  }

  /// Against the pattern's own runs, again and again, as the serial oracle finds them. The last run of one
  /// and the first of the next are one where their symbols are equal.
  std::string verify_encoded() const {
    const RunLengthFormat& format = params_.format;
    const auto runs = static_cast<std::int64_t>(once_.symbols.size()) / format.element_bytes;
    const std::int64_t joined = pattern_.equal(0, pattern_.count - 1) ? 1 : 0;
    const std::int64_t repeats = params_.elements / pattern_.count;
    if (encoded().runs != repeats * (runs - joined) + joined)
      return std::to_string(encoded().runs) + " runs are not as many as there should be";
    const auto same = [&](const Array<std::byte, Executor>& all, std::int64_t at,
                          const Array<std::byte, Executor>& some, std::int64_t first, std::int64_t end,
                          int each) {
      const std::size_t bytes = bytes_of(end - first, each);
      return equal_bytes(executor_, all.span().subspan(bytes_of(at + first, each), bytes),
                         some.span().subspan(bytes_of(first, each), bytes));
    };
    const auto length = [](const std::vector<std::byte>& bytes) { return testing::length_at(bytes, 4, 0); };
    const auto length_size = sizeof(std::uint32_t);
    const std::uint64_t first_length = length(lengths_once_.to_host(0, length_size));
    const std::uint64_t last_length = length(lengths_once_.to_host(bytes_of(runs - 1, 4), length_size));
    for (std::int64_t repeat = 0; repeat < repeats; ++repeat) {
      const std::int64_t at = repeat * (runs - joined);
      const std::int64_t first = repeat > 0 ? joined : 0;
      const std::uint64_t more = repeat + 1 < repeats && joined > 0 ? first_length : 0;
      if (!same(symbols_, at, symbols_once_, first, runs, format.element_bytes) ||
          !same(lengths_, at, lengths_once_, first, runs - 1, format.length_bytes) ||
          length(lengths_.to_host(bytes_of(at + runs - 1, 4), length_size)) != last_length + more)
        return "runs from " + std::to_string(at) + " on are wrong";
    }
    return "";
  }
  std::string verify_decoded() const {
    return decoded().elements == params_.elements ? verify_elements() : "not all elements";
  }
  std::string verify_elements() const {
    return equal_bytes(executor_, decoded_.span(), elements_.span()) ? "" : "elements differ";
  }

 private:
  /// Pinned on a GPU, so that a call does not wait for its report.
  static HostMemory allocate_reports() {
    constexpr std::size_t kBytes = sizeof(EncodeRunLengthsReport) + sizeof(DecodeRunLengthsReport);
    return kSpace == Space::kDevice ? allocate_pinned(kBytes) : allocate_host(kBytes);
  }
  EncodeRunLengthsReport& encoded() const { return *reports_.as<EncodeRunLengthsReport>(1).data(); }
  DecodeRunLengthsReport& decoded() const {
    return *reinterpret_cast<DecodeRunLengthsReport*>(reports_.data() + sizeof(EncodeRunLengthsReport));
  }

  static std::size_t bytes_of(std::int64_t count, int each) {
    return static_cast<std::size_t>(count) * static_cast<std::size_t>(each);
  }
  DecodeRunLengthsParams decode_params() const {
    return {.format = params_.format, .runs = encoded().runs, .max_elements = params_.elements};
  }

  Executor& executor_;
  RunArray pattern_;
  EncodeRunLengthsParams params_;
  testing::EncodedRuns once_;  // the pattern's, as the serial oracle finds them
  Array<std::byte, Executor> symbols_once_;
  Array<std::byte, Executor> lengths_once_;
  Array<std::byte, Executor> elements_;
  Array<std::byte, Executor> symbols_;
  Array<std::byte, Executor> lengths_;
  Array<std::byte, Executor> decoded_;
  Array<std::byte, Executor> runs_;
  HostMemory reports_;
};

#if CUMULUS_WITH_CUDA
const std::pair<const char*, RunLengthReference> kReferences[] = {
    {"encode-cub", RunLengthReference::kCub}, {"encode-parle", RunLengthReference::kParle}};

void bench_references(Runner<CudaExecutor>& runner, Coding<CudaExecutor>& coding,
                      const NameOfWay& name_of_way) {
  for (const auto& [way, reference] : kReferences) {
    if (!runner.wants(name_of_way(way))) continue;
    const RunLengthReferenceArrays arrays = coding.reference_arrays();
    Array<std::byte, CudaExecutor> scratch(runner.executor(), reference_scratch_bytes(reference, arrays));
    runner.measure({.name = name_of_way(way),
                    .bytes = coding.compulsory_bytes(),
                    .items = static_cast<double>(coding.elements()),
                    .unit = "elements",
                    .scratch_bytes = scratch.size(),
                    .run =
                        [&, which = reference] {
                          encode_with_reference(which, runner.executor(), arrays, scratch.span());
                        },
                    .verify = [&] { return coding.verify_encoded(); },
                    .verified_by = "serial oracle, every run"});
  }
}
#else
void bench_references(Runner<CudaExecutor>& /*runner*/, Coding<CudaExecutor>& /*coding*/,
                      const NameOfWay& /*name_of_way*/) {}
#endif

/// One thread, one element after another, as anybody would write it.
template <class T>
void encode_in_a_plain_loop(const T* elements, std::int64_t count, T* symbols, std::uint32_t* counts) {
  const auto differ = [](const T& a, const T& b) {
    if constexpr (run_length::kIsWord<T>) {
      return a != b;
    } else {
      return std::memcmp(&a, &b, sizeof(T)) != 0;
    }
  };
  std::int64_t run = -1;
  for (std::int64_t i = 0; i < count; ++i) {
    if (i == 0 || differ(elements[i], elements[i - 1])) {
      symbols[++run] = elements[i];
      counts[run] = 0;
    }
    ++counts[run];
  }
}

template <class T>
void decode_in_a_plain_loop(const T* symbols, const std::uint32_t* counts, std::int64_t runs, T* elements) {
  for (std::int64_t run = 0; run < runs; ++run) elements = std::fill_n(elements, counts[run], symbols[run]);
}

void bench_references(Runner<CpuExecutor>& runner, Coding<CpuExecutor>& coding,
                      const NameOfWay& name_of_way) {
  const std::string encode_name = name_of_way("encode-plain-loop");
  const std::string decode_name = name_of_way("decode-plain-loop");
  Subject subject{.name = decode_name,
                  .bytes = coding.compulsory_bytes(),
                  .items = static_cast<double>(coding.elements()),
                  .unit = "elements",
                  .scratch_bytes = 0,
                  .run = {},
                  .verify = [&] { return coding.verify_elements(); },
                  .verified_by = "the array that was encoded, every element"};
  run_length::with_element(coding.element_bytes(), [&]<class T>(T) {
    if (runner.wants(decode_name)) {
      subject.run = [arrays = coding.decode_arrays()] {
        decode_in_a_plain_loop(reinterpret_cast<const T*>(arrays.symbols), arrays.counts, arrays.runs,
                               reinterpret_cast<T*>(arrays.elements));
      };
      runner.measure(subject);
    }
    if (!runner.wants(encode_name)) return;
    subject.name = encode_name;
    subject.run = [arrays = coding.reference_arrays()] {
      encode_in_a_plain_loop(reinterpret_cast<const T*>(arrays.elements), arrays.count,
                             reinterpret_cast<T*>(arrays.symbols), arrays.counts);
    };
    subject.verify = [&] { return coding.verify_encoded(); };
    subject.verified_by = "serial oracle, every run";
    runner.measure(subject);
  });
}

/// An array is prepared once for all ways to encode and decode it: that takes longer than they do.
template <class Executor, class MakePattern>
void bench_array(Runner<Executor>& runner, const NameOfWay& name_of_way, std::int64_t elements,
                 const MakePattern& make_pattern) {
  const std::string encode_name = name_of_way("encode");
  const std::string decode_name = name_of_way("decode");
  if (std::none_of(std::begin(kWays), std::end(kWays),
                   [&](const char* way) { return runner.wants(name_of_way(way)); }))
    return;
  Coding<Executor> coding(runner.executor(), make_pattern(), elements);
  Subject subject{.name = encode_name,
                  .bytes = coding.compulsory_bytes(),
                  .items = static_cast<double>(coding.elements()),
                  .unit = "elements",
                  .scratch_bytes = coding.encode_scratch_bytes(),
                  .run = [&] { coding.encode(); },
                  .verify = [&] { return coding.verify_encoded(); },
                  .verified_by = "serial oracle, every run"};
  if (runner.wants(encode_name)) runner.measure(subject);
  if (runner.wants(decode_name)) {
    subject.name = decode_name;
    subject.scratch_bytes = coding.decode_scratch_bytes();
    subject.run = [&] { coding.decode(); };
    subject.verify = [&] { return coding.verify_decoded(); };
    subject.verified_by = "the array that was encoded, every element";
    runner.measure(subject);
  }
  bench_references(runner, coding, name_of_way);
}

template <class Executor>
void bench_pattern(Runner<Executor>& runner, RunPattern pattern, int element_bytes, int log2_elements) {
  const std::int64_t elements = std::int64_t{1} << log2_elements;
  bench_array(
      runner,
      [=](const std::string& way) { return name_of_subject(way, pattern, element_bytes, log2_elements); },
      elements, [=] { return make_run_array(pattern, element_bytes, std::min(kPatternElements, elements)); });
}

/// A picture's pixels, row by row.
RunArray read_pixels(const std::string& path) {
  const absl::StatusOr<cumulus::Array> picture =
      cli::is_npy(path) ? cli::read_npy(path) : cli::read_image_as_stored(path);
  if (!picture.ok()) throw std::runtime_error(std::string(picture.status().message()));
  const Shape& shape = picture->shape();
  const std::int64_t channels = shape.size() == 3 ? shape[2] : 1;
  const std::int64_t pixel_bytes = channels * static_cast<std::int64_t>(element_bytes(picture->type()));
  if (shape.size() < 2 || shape.size() > 3 || channels > 4 || pixel_bytes > 16)
    throw std::runtime_error(path + " is no picture of at most 4 channels and 16 bytes a pixel");
  RunArray pixels(static_cast<int>(pixel_bytes), shape[0] * shape[1]);
  pixels.bytes.assign(picture->bytes().begin(), picture->bytes().end());
  return pixels;
}

/// The picture above itself as often as there is room for, a power of two times.
template <class Executor>
void bench_picture(Runner<Executor>& runner, const std::string& path, std::int64_t most_elements) {
  const RunArray picture = read_pixels(path);
  std::int64_t elements = picture.count;
  while (2 * elements <= most_elements) elements *= 2;
  const auto name_of_way = [&](const std::string& way) {
    return "run_length/" + way + "-" + name_of_element(picture.element_bytes) + "-" +
           std::filesystem::path(path).stem().string() + "/" + std::to_string(elements);
  };
  bench_array(runner, name_of_way, elements, [&] { return picture; });
}

template <class Executor>
void bench_all(Runner<Executor>& runner) {
  constexpr bool kOnGpu = Executor::kSpace == Space::kDevice;
  const int log2_elements = runner.quick() ? 20 : kOnGpu ? 28 : 24;
  const std::vector<int> sizes = kOnGpu || runner.quick() ? std::vector<int>{1, 4} : kCpuElementBytes;
  for (const int element_bytes : sizes) {
    for (const RunPattern pattern : kPatterns) bench_pattern(runner, pattern, element_bytes, log2_elements);
  }
  for (const std::string& path : runner.pictures())
    bench_picture(runner, path, std::int64_t{1} << log2_elements);
  if (runner.quick()) return;
  // Time against n: bench/plots/run_length.py.
  for (int smaller = 12; smaller < log2_elements; smaller += 2) {
    for (const RunPattern pattern : {RunPattern::kTen, RunPattern::kLongRuns})
      bench_pattern(runner, pattern, 4, smaller);
  }
}

}  // namespace

void bench_run_length(Runner<CpuExecutor>& runner) { bench_all(runner); }
void bench_run_length(Runner<CudaExecutor>& runner) { bench_all(runner); }

}  // namespace cumulus::bench
