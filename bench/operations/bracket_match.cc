#include "kernels/bracket_match/bracket_match.h"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "bench/baselines/bracket_match_look_back.h"
#include "bench/harness/bench.h"
#include "kernels/bracket_match/intersect_clips.h"
#include "tests/cases/bracket_match_case.h"
#include "tests/cases/bracket_match_check.h"
#include "tests/cases/bracket_match_clips_case.h"

namespace cumulus::bench {
namespace {

using testing::BracketPattern;

std::string variant_name(BracketPattern pattern) {
  std::string name = name_of(pattern);
  for (char& c : name) {
    if (c == ' ') c = '-';
  }
  return name;
}

/// A text, and what is right for it.
struct BracketText {
  std::string symbols;
  std::uint64_t sum_of_partners;

  BracketText(BracketPattern pattern, std::int64_t size)
      : symbols(make_brackets(pattern, size)), sum_of_partners(testing::naive_sum_of_partners(symbols)) {}

  std::vector<std::uint8_t> bytes() const { return {symbols.begin(), symbols.end()}; }
  /// Empty, or a difference.
  std::string verify(const std::vector<std::int32_t>& partner) const {
    if (testing::sum_of_partners(partner) == sum_of_partners) return "";
    return testing::verify_long_brackets<std::int32_t>(symbols, partner, {}, {}, {});
  }
};
constexpr const char* kVerifiedBy = "serial stack, a sum over every element";

/// Rows of one benchmark, each of a text. The texts of those that are wanted are made at the same time, each
/// once: 2^28 symbols take seconds.
class Rows {
 public:
  using Measure = std::function<void(const std::string& name, const BracketText& text)>;

  void add(const std::string& name, BracketPattern pattern, std::int64_t size, Measure measure) {
    auto& text = texts_[{pattern, size}];
    if (!text.valid()) {
      text = std::async(std::launch::async, [=] { return BracketText(pattern, size); }).share();
    }
    rows_.push_back({name, text, std::move(measure)});
  }

  /// In the order in which they were added. A text goes with the last of its rows.
  void run() {
    for (const Row& row : rows_) row.text.wait();  // what makes a text would disturb what is measured
    texts_.clear();
    for (; !rows_.empty(); rows_.pop_front())
      rows_.front().measure(rows_.front().name, rows_.front().text.get());
  }

 private:
  struct Row {
    std::string name;
    std::shared_future<BracketText> text;
    Measure measure;
  };
  std::map<std::pair<BracketPattern, std::int64_t>, std::shared_future<BracketText>> texts_;
  std::deque<Row> rows_;
};

/// `with_tree`: parents, depths and tops besides.
template <class Executor>
void bench_text(Runner<Executor>& runner, const std::string& name, const BracketText& text, bool with_tree) {
  constexpr Space kSpace = Executor::kSpace;
  Executor& executor = runner.executor();
  const Array<std::uint8_t, Executor> symbols(executor, text.bytes());
  const auto size = static_cast<std::int64_t>(text.symbols.size());
  const std::size_t count = text.symbols.size();
  const std::size_t tree_count = with_tree ? count : 0;
  const Array<std::int32_t, Executor> partner(executor, count);
  const Array<std::int32_t, Executor> parent(executor, tree_count);
  const Array<std::int32_t, Executor> depth(executor, tree_count);
  const Array<std::int32_t, Executor> top(executor, tree_count);
  const BracketTable table = BracketTable::of_pairs("()[]{}");
  BracketOutputs<std::int32_t, kSpace> outputs;
  outputs.partner = partner.span();
  outputs.parent = parent.span();
  outputs.depth = depth.span();
  outputs.top = top.span();
  const ReportMemory<BracketReport, Executor> report;
  runner.measure({
      .name = name,
      .bytes = static_cast<std::size_t>(testing::bracket_bytes(size, 1, 4, with_tree ? 4 : 1)),
      .items = static_cast<double>(size),
      .unit = "symbols",
      .scratch_bytes = match_brackets_scratch_bytes<kSpace>(size, false),
      .run =
          [&] { match_brackets<std::int32_t>(executor, symbols.span(), table, {}, outputs, report.get()); },
      .verify =
          [&] {
            if (!with_tree) return text.verify(partner.to_host());
            return testing::verify_long_brackets(text.symbols, partner.to_host(), parent.to_host(),
                                                 depth.to_host(), top.to_host());
          },
      .verified_by = with_tree ? "serial stack, every element" : kVerifiedBy,
  });
}

/// The loop that everybody writes first, for the CPU's ratio to it.
void bench_serial_stack(Runner<CpuExecutor>& runner, const std::string& name, const BracketText& text) {
  std::vector<std::int32_t> partner(text.symbols.size());
  std::vector<std::int32_t> stack;
  runner.measure({
      .name = name,
      .bytes = static_cast<std::size_t>(
          testing::bracket_bytes(static_cast<std::int64_t>(text.symbols.size()), 1, 4, 1)),
      .items = static_cast<double>(text.symbols.size()),
      .unit = "symbols",
      .scratch_bytes = 0,
      .run =
          [&] {
            stack.clear();
            for (std::size_t i = 0; i < text.symbols.size(); ++i) {
              partner[i] = -1;
              const char c = text.symbols[i];
              if (c == '(' || c == '[' || c == '{') {
                stack.push_back(static_cast<std::int32_t>(i));
              } else if ((c == ')' || c == ']' || c == '}') && !stack.empty()) {
                const auto open = static_cast<std::size_t>(stack.back());
                stack.pop_back();
                const char o = text.symbols[open];
                if ((o == '(' && c == ')') || (o == '[' && c == ']') || (o == '{' && c == '}')) {
                  partner[i] = static_cast<std::int32_t>(open);
                  partner[open] = static_cast<std::int32_t>(i);
                }
              }
            }
          },
      .verify = [&] { return text.verify(partner); },
      .verified_by = kVerifiedBy,
  });
}

#if CUMULUS_WITH_CUDA
/// The reference's single pass, beside the default.
void bench_look_back(Runner<CudaExecutor>& runner, const std::string& name, const BracketText& text,
                     int partition) {
  CudaExecutor& executor = runner.executor();
  const auto size = static_cast<std::int64_t>(text.symbols.size());
  const Array<std::uint8_t, CudaExecutor> symbols(executor, text.bytes());
  const Array<std::int32_t, CudaExecutor> partner(executor, text.symbols.size());
  const BracketTable table = BracketTable::of_pairs("()[]{}");
  runner.measure({
      .name = name,
      .bytes = static_cast<std::size_t>(testing::bracket_bytes(size, 1, 4, 1)),
      .items = static_cast<double>(size),
      .unit = "symbols",
      .scratch_bytes = look_back_scratch_bytes(size, partition),
      .run = [&] { look_back_match(executor, symbols.span(), table, partition, partner.span()); },
      .verify = [&] { return text.verify(partner.to_host()); },
      .verified_by = kVerifiedBy,
  });
}
#endif

template <class Executor>
void bench_clips(Runner<Executor>& runner, testing::ScenePattern pattern, std::int64_t size) {
  const std::string name = std::string("intersect_clips/") + name_of(pattern) + "/" + std::to_string(size);
  if (!runner.wants(name)) return;
  Executor& executor = runner.executor();
  const testing::ClipScene scene = make_scene(pattern, size);
  const Array<std::uint8_t, Executor> elements(executor, scene.elements);
  const Array<float, Executor> boxes(executor, scene.boxes);
  const Array<float, Executor> bounds(executor, scene.boxes.size());
  const ReportMemory<ClipReport, Executor> report;
  runner.measure({
      .name = name,
      .bytes = static_cast<std::size_t>(testing::clip_bytes(size)),
      .items = static_cast<double>(size),
      .unit = "elements",
      .scratch_bytes = intersect_clips_scratch_bytes<Executor::kSpace>(size),
      .run = [&] { intersect_clips(executor, elements.span(), boxes.span(), bounds.span(), report.get()); },
      .verify =
          [&] { return testing::verify_clip_bounds(testing::naive_clip_bounds(scene), bounds.to_host()); },
      .verified_by = "a stack of boxes, every element",
  });
}

constexpr std::array kShownPatterns = {BracketPattern::kRandom, BracketPattern::kShallow,
                                       BracketPattern::kHill, BracketPattern::kDeep, BracketPattern::kStairs};

constexpr std::array kAdversaries = {BracketPattern::kOneATile, BracketPattern::kFarApart};

/// Which rows there are.
template <class Executor>
class Benchmark {
 public:
  explicit Benchmark(Runner<Executor>& runner) : runner_(runner) {}

  void run() {
    std::vector<std::int64_t> sizes = {std::int64_t{1} << 20, std::int64_t{1} << 24};
    if (kGpu) sizes.push_back(std::int64_t{1} << 28);
    if (runner_.quick()) sizes = {std::int64_t{1} << 18};
    for (const std::int64_t size : sizes) {
      for (const auto pattern : kShownPatterns) add(pattern, size, false);
      for (const auto pattern : kAdversaries) add(pattern, size, false);
    }
    const std::int64_t size = sizes.back();
    for (const auto pattern :
         {BracketPattern::kSparse, BracketPattern::kAllOpen, BracketPattern::kCloseThenOpen}) {
      add(pattern, size, false);
    }
    add(BracketPattern::kRandom, size, true);
    add(BracketPattern::kDeep, size, true);
    const std::int64_t smaller = std::min(size, std::int64_t{1} << 24);
    for (const auto pattern : kShownPatterns) add_single_pass(pattern, smaller);
    for (const auto pattern : kAdversaries) add_single_pass(pattern, smaller);
    rows_.run();
    for (const auto pattern :
         {testing::ScenePattern::kDrawing, testing::ScenePattern::kRandom, testing::ScenePattern::kDeep}) {
      bench_clips(runner_, pattern, smaller);
    }
  }

 private:
  static constexpr bool kGpu = std::is_same_v<Executor, CudaExecutor>;

  void add(const std::string& method, BracketPattern pattern, const std::string& outputs, std::int64_t size,
           Rows::Measure measure) {
    const std::string name = method + "/" + variant_name(pattern) + outputs + "/" + std::to_string(size);
    if (runner_.wants(name)) rows_.add(name, pattern, size, std::move(measure));
  }
  /// On a CPU the loop that everybody writes first too.
  void add(BracketPattern pattern, std::int64_t size, bool with_tree) {
    add("match_brackets", pattern, with_tree ? "-all-outputs" : "", size,
        [=, this](const std::string& name, const BracketText& text) {
          bench_text(runner_, name, text, with_tree);
        });
    if constexpr (!kGpu) {
      if (with_tree) return;
      add("serial_stack", pattern, "", size, [this](const std::string& name, const BracketText& text) {
        bench_serial_stack(runner_, name, text);
      });
    }
  }
  /// On a GPU alone.
  void add_single_pass([[maybe_unused]] BracketPattern pattern, [[maybe_unused]] std::int64_t size) {
#if CUMULUS_WITH_CUDA
    if constexpr (kGpu) {
      for (const int partition : kLookBackPartitions) {
        add("stack_look_back/partition-" + std::to_string(partition), pattern, "", size,
            [=, this](const std::string& name, const BracketText& text) {
              bench_look_back(runner_, name, text, partition);
            });
      }
    }
#endif
  }

  Runner<Executor>& runner_;
  Rows rows_;
};

}  // namespace

void bench_bracket_match(Runner<CpuExecutor>& runner);
void bench_bracket_match(Runner<CudaExecutor>& runner);

void bench_bracket_match(Runner<CpuExecutor>& runner) { Benchmark(runner).run(); }
void bench_bracket_match(Runner<CudaExecutor>& runner) { Benchmark(runner).run(); }

}  // namespace cumulus::bench
