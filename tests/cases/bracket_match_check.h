#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

// Bracket matching: verifiers of its outputs. For tests and benchmarks.

namespace cumulus::testing {

/// The first difference, or empty.
template <class Index>
std::string verify_bracket_output(const char* name, const std::vector<std::int64_t>& right,
                                  const std::vector<Index>& got) {
  if (got.size() != right.size())
    return std::string(name) + " has " + std::to_string(got.size()) + " elements";
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (static_cast<std::int64_t>(got[i]) == right[i]) continue;
    std::ostringstream text;
    text << name << " of element " << i << ": " << +got[i] << ", not " << right[i];
    return text.str();
  }
  return "";
}

inline constexpr std::array<std::int8_t, 256> kBracketRoles = [] {
  std::array<std::int8_t, 256> roles{};
  constexpr std::string_view kPairs = "()[]{}";
  for (std::size_t i = 0; i < kPairs.size(); ++i) {
    const int kind = static_cast<int>(i / 2) + 1;
    roles[static_cast<std::uint8_t>(kPairs[i])] = static_cast<std::int8_t>(i % 2 == 0 ? kind : -kind);
  }
  return roles;
}();
/// k > 0 of an open of kind k over "()[]{}", -k of a close; 0 of anything else.
inline int bracket_role(char c) { return kBracketRoles[static_cast<std::uint8_t>(c)]; }

/// Compares one output of matching with what it should be, element by element; an empty one is not compared.
template <class Index>
class OutputComparison {
 public:
  OutputComparison(const char* name, const std::vector<Index>& got) : name_(name), got_(got) {}

  bool wanted() const { return !got_.empty(); }
  bool same(std::int64_t element, std::int64_t right) {
    if (got_.empty() || got_[static_cast<std::size_t>(element)] == right) return true;
    wrong_ = std::string(name_) + " of element " + std::to_string(element) + ": " +
             std::to_string(got_[static_cast<std::size_t>(element)]) + ", not " + std::to_string(right);
    return false;
  }
  /// The last difference, or empty.
  const std::string& wrong() const { return wrong_; }

 private:
  const char* name_;
  const std::vector<Index>& got_;
  std::string wrong_;
};

/// A number by which to know an array of partners: the sum of one of these for each element. Equal arrays
/// have equal sums, different ones hardly ever.
inline std::uint64_t partner_term(std::int64_t element, std::int64_t partner) {
  std::uint64_t term = static_cast<std::uint64_t>(element) * 0x9E3779B97F4A7C15u;
  term = (term ^ static_cast<std::uint64_t>(partner + 1)) * 0xD6E8FEB86659FD93u;
  return (term ^ term >> 32) * 0xD6E8FEB86659FD93u;
}
template <class Index>
std::uint64_t sum_of_partners(const std::vector<Index>& partner) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < partner.size(); ++i)
    sum += partner_term(static_cast<std::int64_t>(i), partner[i]);
  return sum;
}
/// The sum that is right, by a stack in one pass. Over "()[]{}".
inline std::uint64_t naive_sum_of_partners(std::string_view text) {
  std::uint64_t sum = 0;
  std::vector<std::int64_t> stack;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(text.size()); ++i) {
    const int role = bracket_role(text[static_cast<std::size_t>(i)]);
    if (role > 0) {
      stack.push_back(i);
    } else if (role == 0 || stack.empty()) {
      sum += partner_term(i, -1);
    } else {
      const std::int64_t open = stack.back();
      stack.pop_back();
      const bool fit = bracket_role(text[static_cast<std::size_t>(open)]) == -role;
      sum += partner_term(i, fit ? open : -1) + partner_term(open, fit ? i : -1);
    }
  }
  for (const std::int64_t open : stack) sum += partner_term(open, -1);
  return sum;
}

/// Compares with a stack in one pass and no memory but the stack's: for texts that are too long for
/// naive_bracket_match. Over "()[]{}"; empty vectors are not compared. The first difference, or empty.
template <class Index>
std::string verify_long_brackets(std::string_view text, const std::vector<Index>& partner,
                                 const std::vector<Index>& parent, const std::vector<Index>& depth,
                                 const std::vector<Index>& top) {
  OutputComparison partners("partner", partner);
  OutputComparison parents("parent", parent);
  OutputComparison depths("depth", depth);
  OutputComparison tops("top", top);
  const bool tree = parents.wanted() || depths.wanted() || tops.wanted();
  std::vector<std::int64_t> stack;
  const auto last = [&] { return stack.empty() ? -1 : stack.back(); };
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(text.size()); ++i) {
    const int role = bracket_role(text[static_cast<std::size_t>(i)]);
    if (role < 0) {
      const std::int64_t open = last();
      const bool fit = open >= 0 && bracket_role(text[static_cast<std::size_t>(open)]) == -role;
      if (!partners.same(i, fit ? open : -1)) return partners.wrong();
      if (open >= 0 && !partners.same(open, fit ? i : -1)) return partners.wrong();
      if (open >= 0) stack.pop_back();
    } else if (role == 0 && !partners.same(i, -1)) {
      return partners.wrong();
    }
    if (tree && !parents.same(i, last())) return parents.wrong();
    if (tree && !depths.same(i, static_cast<std::int64_t>(stack.size()))) return depths.wrong();
    if (role > 0) stack.push_back(i);
    if (tree && !tops.same(i, last())) return tops.wrong();
  }
  for (const std::int64_t open : stack) {
    if (!partners.same(open, -1)) return partners.wrong();
  }
  return "";
}

}  // namespace cumulus::testing
