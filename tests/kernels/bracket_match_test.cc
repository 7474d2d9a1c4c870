#include "kernels/bracket_match/bracket_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/bracket_match/cpu/stack_cursor.h"
#include "tests/cases/bracket_match_case.h"
#include "tests/cases/bracket_match_check.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using testing::BackendArray;
using testing::BracketAnswer;
using testing::BracketPattern;
using testing::Documents;
using ::testing::HasSubstr;
using testing::kBracketPatterns;
using testing::kBracketSizes;
using testing::kDocuments;
using testing::make_brackets;
using testing::make_documents;
using testing::naive_bracket_match;
using testing::naive_match_of_documents;
using testing::verify_bracket_output;
using Fault = BracketReport::Fault;

template <class Index>
struct Matched {
  std::vector<Index> partner, parent, depth, top;
  std::vector<std::int64_t> maximum_depth, unmatched;
  BracketReport report;
};

std::vector<std::uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

/// Matches in fresh, poisoned memory, with all outputs or the partner alone; checks that exactly the stated
/// scratch was taken.
template <class Index, class Backend, class Symbol>
Matched<Index> match(Backend& backend, const std::vector<Symbol>& symbols, bool all_outputs = true,
                     const std::vector<std::int64_t>& documents = {}, std::string_view pairs = "()[]{}") {
  constexpr Space kSpace = Backend::kSpace;
  const std::size_t other = all_outputs ? symbols.size() : 0;
  BackendArray<Backend, Symbol> text(backend, symbols);
  BackendArray<Backend, std::int64_t> segments(backend, documents);
  BackendArray<Backend, Index> partner(backend, symbols.size());
  BackendArray<Backend, Index> parent(backend, other);
  BackendArray<Backend, Index> depth(backend, other);
  BackendArray<Backend, Index> top(backend, other);
  BackendArray<Backend, std::int64_t> maximum_depth(backend, all_outputs ? 1 : 0);
  BackendArray<Backend, std::int64_t> unmatched(backend, all_outputs ? 1 : 0);
  const BracketOutputs<Index, kSpace> outputs{partner.span(), parent.span(),        depth.span(),
                                              top.span(),     maximum_depth.span(), unmatched.span()};
  const auto scratch =
      match_brackets_scratch_bytes<kSpace>(static_cast<std::int64_t>(symbols.size()), !documents.empty());
  backend.executor().reserve_scratch(scratch);
  Matched<Index> result;
  if constexpr (sizeof(Symbol) == 1) {
    match_brackets(backend.executor(), text.const_span(), BracketTable::of_pairs(pairs),
                   segments.const_span(), outputs, &result.report);
  } else {
    match_brackets(backend.executor(), text.const_span(), segments.const_span(), outputs, &result.report);
  }
  backend.executor().synchronize();
  EXPECT_EQ(backend.executor().scratch_arena().used_bytes(), scratch);
  result.partner = partner.to_host();
  result.parent = parent.to_host();
  result.depth = depth.to_host();
  result.top = top.to_host();
  result.maximum_depth = maximum_depth.to_host();
  result.unmatched = unmatched.to_host();
  return result;
}

void check_report(const BracketAnswer& right, const BracketReport& report) {
  EXPECT_EQ(report.unmatched, right.unmatched);
  EXPECT_EQ(report.position, right.fault_position);
  EXPECT_EQ(report.open_position, right.fault_open);
  EXPECT_EQ(report.segment, right.fault_segment);
  const Fault fault = right.fault_position < 0 ? Fault::kNone
                      : right.fault_at_end     ? Fault::kUnclosed
                      : right.fault_open < 0   ? Fault::kUnexpectedClose
                                               : Fault::kWrongClose;
  EXPECT_EQ(report.fault, fault);
}

template <class Index>
void check(const BracketAnswer& right, const Matched<Index>& got) {
  EXPECT_EQ(verify_bracket_output("partner", right.partner, got.partner), "");
  EXPECT_EQ(verify_bracket_output("parent", right.parent, got.parent), "");
  EXPECT_EQ(verify_bracket_output("depth", right.depth, got.depth), "");
  EXPECT_EQ(verify_bracket_output("top", right.top, got.top), "");
  EXPECT_EQ(got.maximum_depth, std::vector<std::int64_t>{right.maximum_depth});
  EXPECT_EQ(got.unmatched, std::vector<std::int64_t>{right.unmatched});
  EXPECT_EQ(got.report.maximum_depth, right.maximum_depth);
  check_report(right, got.report);
}

/// Calls body(text) for every pattern and size.
template <class Body>
void for_every_text(const std::vector<std::int64_t>& sizes, const Body& body) {
  for (const BracketPattern pattern : kBracketPatterns) {
    for (const std::int64_t size : sizes) {
      SCOPED_TRACE(std::string(name_of(pattern)) + ", " + std::to_string(size) + " bytes");
      body(make_brackets(pattern, size));
      if (::testing::Test::HasFailure()) return;
    }
  }
}

template <class Backend>
class BracketMatch : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(BracketMatch, testing::Backends, testing::BackendNames);

TYPED_TEST(BracketMatch, MatchesTheOracleOnEveryText) {
  for_every_text(kBracketSizes, [&](const std::string& text) {
    check(naive_bracket_match(text), match<std::int32_t>(this->backend(), bytes_of(text)));
  });
}

TYPED_TEST(BracketMatch, MatchesTheOracleOnPartnersAlone) {
  for_every_text(kBracketSizes, [&](const std::string& text) {
    const BracketAnswer right = naive_bracket_match(text);
    const auto got = match<std::int32_t>(this->backend(), bytes_of(text), false);
    EXPECT_EQ(verify_bracket_output("partner", right.partner, got.partner), "");
    check_report(right, got.report);
    EXPECT_EQ(got.report.maximum_depth, -1);
  });
}

TYPED_TEST(BracketMatch, NumbersWith64BitsToo) {
  for_every_text({0, 1, 512, 514, 4097, 65537}, [&](const std::string& text) {
    check(naive_bracket_match(text), match<std::int64_t>(this->backend(), bytes_of(text)));
  });
}

TYPED_TEST(BracketMatch, TakesTokensOfManyKinds) {
  for_every_text({0, 1, 33, 4097, 65537}, [&](const std::string& text) {
    const BracketAnswer right = naive_bracket_match(text);
    check(right, match<std::int32_t>(this->backend(), testing::tokens_of(text)));
    check(right, match<std::int64_t>(this->backend(), testing::tokens_of(text)));
  });
}

/// Kind k opens with byte 2 k and closes with byte 2 k + 1; one close in 500 has the kind 4 further on.
std::vector<std::uint8_t> with_many_kinds(const std::string& text, int kinds) {
  std::mt19937 random(3);
  std::vector<int> open;
  std::vector<std::uint8_t> bytes;
  for (const char c : text) {
    int kind = static_cast<int>(random() % static_cast<unsigned int>(kinds));
    const bool opens = std::string_view("([{").find(c) != std::string_view::npos;
    if (opens) {
      open.push_back(kind);
    } else if (!open.empty()) {
      kind = (open.back() + (random() % 500 == 0 ? 4 : 0)) % kinds;
      open.pop_back();
    }
    bytes.push_back(static_cast<std::uint8_t>(2 * kind + (opens ? 0 : 1)));
  }
  return bytes;
}

TYPED_TEST(BracketMatch, TellsApartTheKindsOfManyPairs) {
  for (const int kinds : {1, 4, 5, 9, 128}) {
    SCOPED_TRACE(std::to_string(kinds) + " kinds");
    std::string pairs;
    for (int byte = 0; byte < 2 * kinds; ++byte) pairs.push_back(static_cast<char>(byte));
    for (const auto pattern :
         {BracketPattern::kRandom, BracketPattern::kHill, BracketPattern::kDeep, BracketPattern::kStairs}) {
      SCOPED_TRACE(name_of(pattern));
      const auto bytes = with_many_kinds(make_brackets(pattern, 30011), kinds);
      const auto at = [&](std::int64_t i) { return bytes[static_cast<std::size_t>(i)]; };
      const BracketAnswer right = naive_bracket_match(
          static_cast<std::int64_t>(bytes.size()), [&](std::int64_t i) { return at(i) % 2 == 0 ? 1 : -1; },
          [&](std::int64_t open, std::int64_t close) { return at(open) + 1 == at(close); });
      check(right, match<std::int32_t>(this->backend(), bytes, true, {}, pairs));
    }
  }
}

TYPED_TEST(BracketMatch, MatchesTheOracleOnManyTiles) {
  for_every_text({std::int64_t{3} * 1000 * 1000 + 7}, [&](const std::string& text) {
    const auto got = match<std::int32_t>(this->backend(), bytes_of(text));
    EXPECT_EQ(testing::verify_long_brackets(text, got.partner, got.parent, got.depth, got.top), "");
  });
}

TYPED_TEST(BracketMatch, MatchesEachDocumentOnItsOwn) {
  for (const Documents documents : kDocuments) {
    SCOPED_TRACE(static_cast<int>(documents));
    for_every_text({0, 1, 33, 4096, 4097, 20011, 65537}, [&](const std::string& text) {
      const auto begins = make_documents(documents, static_cast<std::int64_t>(text.size()));
      const BracketAnswer right = naive_match_of_documents(text, begins);
      check(right, match<std::int32_t>(this->backend(), bytes_of(text), true, begins));
      const auto partners = match<std::int64_t>(this->backend(), testing::tokens_of(text), false, begins);
      EXPECT_EQ(verify_bracket_output("partner", right.partner, partners.partner), "");
      check_report(right, partners.report);
    });
    if (::testing::Test::HasFailure()) return;
  }
}

TYPED_TEST(BracketMatch, MeetsTheFirstOfManyDocumentsFaults) {
  const auto report_of = [&](const std::string& text, const std::vector<std::int64_t>& begins) {
    return match<std::int32_t>(this->backend(), bytes_of(text), true, begins).report;
  };
  // An open left in one document is no partner for the next, and is met before what that begins with.
  BracketReport report = report_of("()(]", {0, 2, 3});
  EXPECT_EQ(report.fault, Fault::kUnclosed);
  EXPECT_EQ(report.position, 3);
  EXPECT_EQ(report.open_position, 2);
  EXPECT_EQ(report.segment, 1);
  EXPECT_EQ(report.expected, ')');
  report = report_of("()]", {0, 2});
  EXPECT_EQ(report.fault, Fault::kUnexpectedClose);
  EXPECT_EQ(report.segment, 1);
  EXPECT_EQ(report_of("()[]{}", {0, 2, 4}).fault, Fault::kNone);
}

TYPED_TEST(BracketMatch, RefusesDocumentsThatBeginNowhere) {
  const auto wrong = [&](const std::vector<std::int64_t>& begins) {
    const auto report = match<std::int32_t>(this->backend(), bytes_of("()()"), true, begins).report;
    EXPECT_EQ(report.fault, Fault::kWrongSegment);
    return report.position;
  };
  EXPECT_EQ(wrong({1, 2}), 0);
  EXPECT_EQ(wrong({0, 2, 1, 5}), 2);
  EXPECT_EQ(wrong({0, 5}), 1);
  EXPECT_EQ(wrong({0, -1}), 1);
  EXPECT_EQ(wrong({std::numeric_limits<std::int64_t>::min()}), 0);
  EXPECT_EQ(wrong({0, 2, std::numeric_limits<std::int64_t>::max()}), 2);
}

TYPED_TEST(BracketMatch, GivesTheStacksTopOfThePaper) {
  // The sequence and the values of "The stack monoid revisited".
  const auto got = match<std::int32_t>(this->backend(), bytes_of("((()((())(()())))"));
  EXPECT_EQ(got.top, (std::vector<std::int32_t>{0, 1, 2, 1, 4, 5, 6, 5, 4, 9, 10, 9, 12, 9, 4, 1, 0}));
}

TYPED_TEST(BracketMatch, SaysWhatWasFoundAndWhatExpected) {
  BracketReport report = match<std::int32_t>(this->backend(), bytes_of("a(b[c)d]")).report;
  EXPECT_EQ(report.fault, Fault::kWrongClose);
  EXPECT_EQ(report.position, 5);
  EXPECT_EQ(report.open_position, 3);
  EXPECT_EQ(report.found, ')');
  EXPECT_EQ(report.expected, ']');
  report = match<std::int32_t>(this->backend(), bytes_of("()}(")).report;
  EXPECT_EQ(report.fault, Fault::kUnexpectedClose);
  EXPECT_EQ(report.position, 2);
  EXPECT_EQ(report.found, '}');
  report = match<std::int32_t>(this->backend(), bytes_of("{()")).report;
  EXPECT_EQ(report.fault, Fault::kUnclosed);
  EXPECT_EQ(report.position, 3);
  EXPECT_EQ(report.open_position, 0);
  EXPECT_EQ(report.expected, '}');
  report = match<std::int32_t>(this->backend(), std::vector<std::int32_t>{5, -6}).report;
  EXPECT_EQ(report.found, -6);
  EXPECT_EQ(report.expected, -5);
}

TYPED_TEST(BracketMatch, LeavesBothOfAWrongPairAloneAndMatchesTheRest) {
  const auto got = match<std::int32_t>(this->backend(), bytes_of("([)()]"));
  EXPECT_EQ(got.partner, (std::vector<std::int32_t>{-1, -1, -1, 4, 3, -1}));
  EXPECT_EQ(got.report.unmatched, 4);
}

TYPED_TEST(BracketMatch, SlowNumbersWhatLiesBeyondTwoToThe31) {
  constexpr Space kSpace = TypeParam::kSpace;
  constexpr std::size_t kFar = (std::size_t{1} << 31) + 7;
  std::vector<std::uint8_t> text(kFar + 5000, 'x');
  text[3] = '(';
  text[5] = '[';
  text[kFar] = ']';
  text[kFar + 4999] = '}';
  BackendArray<TypeParam, std::uint8_t> symbols(this->backend(), text);
  const auto count = static_cast<std::int64_t>(text.size());
  this->executor().reserve_scratch(match_brackets_scratch_bytes<kSpace>(count, false));
  BracketReport report;
  match_brackets(this->executor(), symbols.const_span(), BracketTable::of_pairs("()[]{}"), {},
                 BracketOutputs<std::int64_t, kSpace>{}, &report);
  this->executor().synchronize();
  EXPECT_EQ(report.unmatched, 2);
  EXPECT_EQ(report.fault, Fault::kWrongClose);
  EXPECT_EQ(report.position, static_cast<std::int64_t>(kFar + 4999));
  EXPECT_EQ(report.open_position, 3);
}

// Of a tile so far behind, as the outputs of such a text would take 16 GiB.
TEST(BracketMatchStack, NumbersWhatLiesBeyondTwoToThe31) {
  constexpr std::int64_t kTile = (std::int64_t{1} << 31) / bracket_match::kCpuTile + 1;
  std::vector<std::int64_t> depths(static_cast<std::size_t>(kTile) + 1);
  bracket_match::HostTiles tiles;
  tiles.depth = {depths.data(), depths.size()};
  bracket_match::WalkedStack stack(tiles, kTile);
  constexpr std::int64_t kOpen = kTile * bracket_match::kCpuTile + 5;
  stack.push(kOpen);
  EXPECT_EQ(stack.top(), kOpen);
}

TYPED_TEST(BracketMatch, RefusesOutputsThatDoNotFit) {
  constexpr Space kSpace = TypeParam::kSpace;
  BracketReport report;
  BracketOutputs<std::int32_t, kSpace> outputs;
  outputs.depth = Span<std::int32_t, kSpace>(nullptr, 3);
  const Span<const std::uint8_t, kSpace> text(nullptr, 4);
  const BracketTable table = BracketTable::of_pairs("()");
  EXPECT_THAT(
      [&] { match_brackets(this->executor(), text, table, {}, outputs, &report); },
      ::testing::ThrowsMessage<std::invalid_argument>(HasSubstr("depth has 3 elements; 4 are right")));
  const Span<const std::uint8_t, kSpace> huge(nullptr, std::size_t{1} << 31);
  EXPECT_THAT(
      [&] {
        match_brackets(this->executor(), huge, table, {}, BracketOutputs<std::int32_t, kSpace>{}, &report);
      },
      ::testing::ThrowsMessage<std::invalid_argument>(HasSubstr("64-bit outputs can")));
}

TYPED_TEST(BracketMatch, DoesNotStartForACallerWhoHasLeft) {
  struct Always : Interrupt {
    bool requested() const override { return true; }
  } always;
  this->executor().set_interrupt(&always);
  EXPECT_THROW(match<std::int32_t>(this->backend(), bytes_of("()")), Interrupted);
}

TEST(BracketMatchScratch, IsBelowATenthOfThePartners) {
  for (const std::int64_t count : {1 << 20, 1 << 28}) {
    const std::size_t partners = static_cast<std::size_t>(count) * 4;
    for (const bool segmented : {false, true}) {
      EXPECT_LE(match_brackets_scratch_bytes<Space::kHost>(count, segmented), partners / 10);
      EXPECT_LE(match_brackets_scratch_bytes<Space::kDevice>(count, segmented), partners / 10);
    }
  }
}

TEST(BracketTable, RefusesPairsThatAreNone) {
  const auto refusal = [](std::string_view pairs, const char* what) {
    EXPECT_THAT([&] { BracketTable::of_pairs(pairs); },
                ::testing::ThrowsMessage<std::invalid_argument>(HasSubstr(what)));
  };
  refusal("", "0 bytes");
  refusal("()[", "3 bytes; opens and closes in turn");
  refusal("()(]", "byte 40 twice");
  refusal("||", "byte 124 twice");
  EXPECT_EQ(BracketTable::of_pairs("<>").mate['<'], '>');
}

TEST(BracketMatchVerifier, RefusesOneWrongElement) {
  testing::CpuBackend backend;
  const std::string text = make_brackets(BracketPattern::kRandom, 5000);
  auto got = match<std::int32_t>(backend, bytes_of(text));
  ++got.partner[4321];
  EXPECT_THAT(verify_bracket_output("partner", naive_bracket_match(text).partner, got.partner),
              HasSubstr("partner of element 4321"));
  EXPECT_NE(testing::verify_long_brackets<std::int32_t>(text, got.partner, {}, {}, {}), "");
}

}  // namespace
}  // namespace cumulus
