#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

// Bracket matching: sizes, generators, oracle, bytes moved. For tests and benchmarks.

namespace cumulus::testing {

/// None, one, one more and one less than a word, a warp's stretch and a tile of either backend, twice as many
/// as a tile of the GPU has masks for levels, primes, many tiles.
inline const std::vector<std::int64_t> kBracketSizes = {
    0,    1,    2,    31,   32,   33,   63,    65,    510,   512,   514,   1023,  1024,
    1025, 4095, 4096, 4097, 8191, 8193, 16383, 16384, 16385, 32771, 65537, 100003};

enum class BracketPattern {
  // The five inputs that a benchmark shows.
  kRandom,   // opens and closes with equal chance
  kShallow,  // random, but never deeper than 64
  kHill,     // one walk far up and down again, with noise on the way
  kDeep,     // ((((...))))
  kStairs,   // each stretch pops what the one before has pushed, but one
  // Adversaries.
  kAllOpen,
  kAllClose,
  kCloseThenOpen,  // )))...(((
  kFlat,           // ()()()
  kOneATile,       // a long climb by one open in 4096, then closes only: each pops from another tile
  kFarApart,       // the same by one open in 40 * 4096
  kSparse,         // brackets in text, one in 50
  kNeutral,        // no bracket at all
  kWrongKinds,     // kinds at random: few fit
  kLateMistake,    // right but for one close near the end
  kUnclosed,       // right but for opens that stay
};

inline const std::vector<BracketPattern> kBracketPatterns = {
    BracketPattern::kRandom,   BracketPattern::kShallow,       BracketPattern::kHill,
    BracketPattern::kDeep,     BracketPattern::kStairs,        BracketPattern::kAllOpen,
    BracketPattern::kAllClose, BracketPattern::kCloseThenOpen, BracketPattern::kFlat,
    BracketPattern::kOneATile, BracketPattern::kFarApart,      BracketPattern::kSparse,
    BracketPattern::kNeutral,  BracketPattern::kWrongKinds,    BracketPattern::kLateMistake,
    BracketPattern::kUnclosed};

inline const char* name_of(BracketPattern pattern) {
  constexpr const char* kNames[] = {"random",  "shallow",     "hill",         "deep",
                                    "stairs",  "all open",    "all close",    "close then open",
                                    "flat",    "one a tile",  "far apart",    "sparse",
                                    "neutral", "wrong kinds", "late mistake", "unclosed"};
  return kNames[static_cast<int>(pattern)];
}

/// What a stack does, one element after another: 'o' opens, 'c' closes a bracket of the right kind.
class BracketWriter {
 public:
  BracketWriter(std::int64_t size, std::uint32_t seed)
      : random_(seed), open_(static_cast<std::size_t>(size), '\0'), text_(open_) {}

  bool full() const { return at_ == text_.size(); }
  std::size_t depth() const { return depth_; }
  std::int64_t left() const { return static_cast<std::int64_t>(text_.size() - at_); }
  bool toss() { return bits(1) != 0; }
  /// Of at most 256, nearly even.
  std::uint32_t below(std::uint32_t limit) { return bits(16) * limit >> 16; }

  void open() {
    const std::uint32_t kind = below(3);
    open_[depth_++] = ")]}"[kind];
    text_[at_++] = "([{"[kind];
  }
  /// Closes rightly; where nothing is open, any close.
  void close() { text_[at_++] = depth_ == 0 ? ")]}"[below(3)] : open_[--depth_]; }
  void put(char byte) { text_[at_++] = byte; }
  std::string text() && { return std::move(text_); }

 private:
  /// Few draws for many symbols: texts are long.
  std::uint32_t bits(int count) {
    if (left_bits_ < count) {
      buffer_ = random_();
      left_bits_ = 64;
    }
    const auto value = static_cast<std::uint32_t>(buffer_ & ((std::uint64_t{1} << count) - 1));
    buffer_ >>= count;
    left_bits_ -= count;
    return value;
  }

  std::mt19937_64 random_;
  std::uint64_t buffer_ = 0;
  int left_bits_ = 0;
  std::string open_;  // the closes that its first depth_ bytes wait for
  std::size_t depth_ = 0;
  std::string text_;  // its first at_ bytes are written
  std::size_t at_ = 0;
};

/// A text of `size` bytes over "()[]{}" and others.
inline std::string make_brackets(BracketPattern pattern, std::int64_t size, std::uint32_t seed = 1) {
  BracketWriter w(size, seed);
  const auto steps = [&](const auto& up) {
    for (std::int64_t i = 0; !w.full(); ++i) up(i) ? w.open() : w.close();
    return std::move(w).text();
  };
  const auto climb = [&](std::int64_t step) {
    for (std::int64_t i = 0; !w.full(); ++i) {
      if (i >= size - size / step - 1) {
        w.close();
      } else if (i % step == 17) {
        w.open();
      } else {
        w.put('.');
      }
    }
    return std::move(w).text();
  };
  const auto balanced = [&](std::int64_t i) {
    return i == 0 || (w.left() > static_cast<std::int64_t>(w.depth()) && (w.depth() == 0 || w.toss()));
  };
  switch (pattern) {
    case BracketPattern::kRandom:
      return steps([&](std::int64_t) { return w.toss(); });
    case BracketPattern::kShallow:
      return steps([&](std::int64_t) { return w.depth() == 0 || (w.depth() < 64 && w.toss()); });
    case BracketPattern::kHill:
      return steps([&](std::int64_t i) { return w.below(4) == 0 ? w.toss() : i < size / 2; });
    case BracketPattern::kDeep:
      return steps([&](std::int64_t i) { return i < size / 2; });
    case BracketPattern::kStairs:
      return steps([&](std::int64_t i) { return i < 4096 || i % 4096 >= 2047; });
    case BracketPattern::kAllOpen:
      return steps([](std::int64_t) { return true; });
    case BracketPattern::kAllClose:
      return steps([](std::int64_t) { return false; });
    case BracketPattern::kCloseThenOpen:
      return steps([&](std::int64_t i) { return i >= size / 2; });
    case BracketPattern::kFlat:
      return steps([](std::int64_t i) { return i % 2 == 0; });
    case BracketPattern::kOneATile:
      return climb(4096);
    case BracketPattern::kFarApart:
      return climb(40 * 4096);
    case BracketPattern::kSparse:
      while (!w.full()) {
        if (w.below(50) != 0) {
          w.put(static_cast<char>('a' + w.below(26)));
        } else {
          w.depth() == 0 || w.toss() ? w.open() : w.close();
        }
      }
      return std::move(w).text();
    case BracketPattern::kNeutral:
      return std::string(static_cast<std::size_t>(size), 'x');
    case BracketPattern::kWrongKinds:
      while (!w.full()) w.put("()[]{}"[w.below(6)]);
      return std::move(w).text();
    case BracketPattern::kLateMistake: {
      std::string text = steps(balanced);
      for (std::size_t i = text.size() - text.size() / 5; i < text.size(); ++i) {
        const std::size_t close = std::string_view(")]}").find(text[i]);
        if (close == std::string_view::npos) continue;
        text[i] = ")]}"[(close + 1) % 3];
        break;
      }
      return text;
    }
    case BracketPattern::kUnclosed:
      return steps([&](std::int64_t) { return w.depth() == 0 || w.below(100) < 52; });
  }
  return {};
}

/// Everything that matching says, from one stack in one pass over the elements.
struct BracketAnswer {
  std::vector<std::int64_t> partner, parent, depth, top;
  std::int64_t maximum_depth = 0;
  std::int64_t unmatched = 0;
  std::int64_t fault_position = -1;  // -1: none
  std::int64_t fault_open = -1;
  std::int64_t fault_segment = -1;
  bool fault_at_end = false;  // of its document: something is open there
};

/// `role(i)` is 1 for an open, -1 for a close, 0 otherwise; `fit(open, close)` compares the kinds.
inline BracketAnswer naive_bracket_match(std::int64_t size, const std::function<int(std::int64_t)>& role,
                                         const std::function<bool(std::int64_t, std::int64_t)>& fit) {
  BracketAnswer answer;
  std::vector<std::int64_t> stack;
  const auto top = [&] { return stack.empty() ? -1 : stack.back(); };
  answer.partner.assign(static_cast<std::size_t>(size), -1);
  for (std::int64_t i = 0; i < size; ++i) {
    const int what = role(i);
    if (what < 0) {
      const std::int64_t open = top();
      if (open >= 0 && fit(open, i)) {
        answer.partner[static_cast<std::size_t>(i)] = open;
        answer.partner[static_cast<std::size_t>(open)] = i;
      } else if (answer.fault_position < 0) {
        answer.fault_position = i;
        answer.fault_open = open;
        answer.fault_segment = 0;
      }
      if (open >= 0) stack.pop_back();
    }
    answer.parent.push_back(top());
    answer.depth.push_back(static_cast<std::int64_t>(stack.size()));
    if (what > 0) stack.push_back(i);
    answer.top.push_back(top());
    answer.maximum_depth = std::max(answer.maximum_depth, static_cast<std::int64_t>(stack.size()));
  }
  if (answer.fault_position < 0 && !stack.empty()) {
    answer.fault_position = size;
    answer.fault_open = top();
    answer.fault_segment = 0;
    answer.fault_at_end = true;
  }
  for (std::int64_t i = 0; i < size; ++i)
    answer.unmatched += role(i) != 0 && answer.partner[static_cast<std::size_t>(i)] < 0;
  return answer;
}

/// Of a text over "()[]{}".
inline BracketAnswer naive_bracket_match(std::string_view text) {
  const auto kind = [&](std::string_view set, std::int64_t i) {
    return set.find(text[static_cast<std::size_t>(i)]);
  };
  return naive_bracket_match(
      static_cast<std::int64_t>(text.size()),
      [&](std::int64_t i) {
        return kind("([{", i) != std::string_view::npos   ? 1
               : kind(")]}", i) != std::string_view::npos ? -1
                                                          : 0;
      },
      [&](std::int64_t open, std::int64_t close) { return kind("([{", open) == kind(")]}", close); });
}

/// Where documents begin in an array of many.
enum class Documents {
  kOne,
  kFew,       // a handful of any length
  kShort,     // about 7 elements each, some empty
  kElements,  // one element each
  kTiles,     // where words, warps' stretches and tiles of either backend begin, and beside
  kEmpty      // empty ones at the beginning and the end
};
inline const std::vector<Documents> kDocuments = {Documents::kOne,      Documents::kFew,   Documents::kShort,
                                                  Documents::kElements, Documents::kTiles, Documents::kEmpty};

inline std::vector<std::int64_t> make_documents(Documents documents, std::int64_t size) {
  std::mt19937 random(7);
  std::vector<std::int64_t> begins = {0};
  const auto step_by = [&](const std::function<std::int64_t()>& length) {
    for (std::int64_t at = length(); at <= size; at += length()) begins.push_back(at);
  };
  switch (documents) {
    case Documents::kOne:
      break;
    case Documents::kFew:
      step_by(
          [&] { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(size / 4 + 2)) + 1; });
      break;
    case Documents::kShort:
      step_by([&, run = 0]() mutable {
        // A length of 0 now and then, but never for ever.
        return ++run % 5 == 0 ? 0 : static_cast<std::int64_t>(random() % 17) + 1;
      });
      break;
    case Documents::kElements:
      step_by([] { return 1; });
      break;
    case Documents::kTiles:
      for (const std::int64_t at : {31, 32, 33, 1024, 4095, 4096, 4097, 8192, 12289, 16384, 16385, 32768})
        if (at <= size) begins.push_back(at);
      break;
    case Documents::kEmpty:
      begins = {0, 0, 0, size / 2, size / 2, size, size};
      break;
  }
  return begins;
}

/// Of each document on its own.
inline BracketAnswer naive_match_of_documents(std::string_view text,
                                              const std::vector<std::int64_t>& begins) {
  BracketAnswer all;
  for (std::size_t segment = 0; segment < begins.size(); ++segment) {
    const std::int64_t base = begins[segment];
    const std::int64_t end =
        segment + 1 < begins.size() ? begins[segment + 1] : static_cast<std::int64_t>(text.size());
    const BracketAnswer one = naive_bracket_match(
        text.substr(static_cast<std::size_t>(base), static_cast<std::size_t>(end - base)));
    const auto moved = [&](std::int64_t element) { return element < 0 ? -1 : element + base; };
    const auto append = [&](std::vector<std::int64_t>& to, const std::vector<std::int64_t>& from) {
      for (const std::int64_t element : from) to.push_back(moved(element));
    };
    append(all.partner, one.partner);
    append(all.parent, one.parent);
    append(all.top, one.top);
    all.depth.insert(all.depth.end(), one.depth.begin(), one.depth.end());
    all.maximum_depth = std::max(all.maximum_depth, one.maximum_depth);
    all.unmatched += one.unmatched;
    if (all.fault_position >= 0 || one.fault_position < 0) continue;
    all.fault_position = one.fault_position + base;
    all.fault_open = moved(one.fault_open);
    all.fault_segment = static_cast<std::int64_t>(segment);
    all.fault_at_end = one.fault_at_end;
  }
  return all;
}

/// The same brackets as tokens, their kinds 1, 70000 and 2^31 - 1.
inline std::vector<std::int32_t> tokens_of(std::string_view text) {
  constexpr std::int32_t kKinds[] = {1, 70000, 0x7fffffff};
  std::vector<std::int32_t> tokens;
  for (const char byte : text) {
    const std::size_t open = std::string_view("([{").find(byte);
    const std::size_t close = std::string_view(")]}").find(byte);
    tokens.push_back(open < 3 ? kKinds[open] : close < 3 ? -kKinds[close] : 0);
  }
  return tokens;
}

/// Bytes that matching has to read and write: the text, and each output once.
inline std::int64_t bracket_bytes(std::int64_t size, std::int64_t symbol_bytes, std::int64_t index_bytes,
                                  int outputs) {
  return size * (symbol_bytes + index_bytes * outputs);
}

}  // namespace cumulus::testing
