// Elements that are NaN or infinite, found and clamped on both backends.
#include "kernels/core/non_finite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>
#include <vector>

#include "kernels/core/cuda_executor.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using testing::BackendArray;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Exactly, of what these tests put into halves: whole numbers below 2048 and what is not finite.
template <class T>
T element_of(double value) {
  if constexpr (std::is_same_v<T, Float16>) {
    if (std::isnan(value)) return {0x7E00};
    if (std::isinf(value)) return {static_cast<std::uint16_t>(value < 0 ? 0xFC00 : 0x7C00)};
    if (value == 0) return {0};
    int exponent = 0;
    const double fraction = std::frexp(std::abs(value), &exponent);
    const auto mantissa = static_cast<std::uint16_t>(std::ldexp(fraction, 11) - 1024);
    return {static_cast<std::uint16_t>((value < 0 ? 0x8000 : 0) | (exponent + 14) << 10 | mantissa)};
  } else {
    return static_cast<T>(value);
  }
}

template <class Backend, class T>
class NonFiniteCase {
 public:
  NonFiniteCase(Backend& backend, const std::vector<double>& values)
      : backend_(backend), elements_(backend, elements_of(values)), word_(allocate_word()) {}

  /// Of the elements from `first` on.
  NonFinite find(std::size_t first = 0) {
    auto* const found = new (word_.data()) NonFinite;
    const auto all = elements_.const_span();
    find_non_finite<T>(backend_.executor(), all.subspan(first, all.size() - first), *found);
    backend_.executor().synchronize();
    return *found;
  }
  std::vector<double> clamp() {
    auto& executor = backend_.executor();
    const auto all = elements_.const_span();
    executor.reserve_scratch(clamp_non_finite_scratch_bytes<T>(all.size()));
    const auto clamped = clamp_non_finite<T>(executor, all);
    std::vector<T> host(all.size());
    executor.download({reinterpret_cast<const std::byte*>(clamped.data()), all.size() * sizeof(T)},
                      {reinterpret_cast<std::byte*>(host.data()), all.size() * sizeof(T)});
    executor.synchronize();
    return {host.begin(), host.end()};
  }

 private:
  static std::vector<T> elements_of(const std::vector<double>& values) {
    std::vector<T> elements;
    for (const double value : values) elements.push_back(element_of<T>(value));
    return elements;
  }
  static HostMemory allocate_word() {
    return Backend::kSpace == Space::kHost ? allocate_host(sizeof(NonFinite))
                                           : allocate_pinned(sizeof(NonFinite));
  }

  Backend& backend_;
  BackendArray<Backend, T> elements_;
  HostMemory word_;
};

template <class Backend, class T>
void finds_the_first(Backend& backend) {
  for (const std::size_t count : {0U, 1U, 7U, 65U, 5000U, 70001U}) {
    std::vector<double> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<double>(i % 1000) - 500;
    EXPECT_FALSE((NonFiniteCase<Backend, T>(backend, values).find().found())) << count;
    for (const std::size_t at : {std::size_t{0}, count / 2, count - 1}) {
      if (at >= count) continue;
      for (const double wrong : {kNan, kInfinity, -kInfinity}) {
        std::vector<double> spoilt = values;
        spoilt[at] = wrong;
        if (at + 1 < count) spoilt.back() = -wrong;  // and not that one
        const NonFinite found = NonFiniteCase<Backend, T>(backend, spoilt).find();
        ASSERT_TRUE(found.found()) << count << ", " << at;
        EXPECT_EQ(found.element(), static_cast<std::int64_t>(at)) << count;
        EXPECT_EQ(std::isnan(found.value()), std::isnan(wrong));
        EXPECT_TRUE(std::isnan(wrong) || found.value() == wrong) << found.value();
      }
    }
  }
}

template <class Backend, class T>
void finds_in_elements_that_begin_anywhere(Backend& backend) {
  std::vector<double> values(1000, 3);
  values[997] = kNan;
  NonFiniteCase<Backend, T> given(backend, values);
  for (const std::size_t first : {1U, 3U, 500U}) {
    EXPECT_EQ(given.find(first).element(), static_cast<std::int64_t>(997 - first));
  }
}

template <class Backend, class T>
void clamps(Backend& backend) {
  std::vector<double> values(5001, 1);
  values[0] = kNan;
  values[17] = -kInfinity;
  values[5000] = kInfinity;
  values[40] = -7;
  const std::vector<double> clamped = NonFiniteCase<Backend, T>(backend, values).clamp();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double right = i == 0 ? 0 : i == 17 ? -65504 : i == 5000 ? 65504 : values[i];
    ASSERT_EQ(clamped[i], right) << i;
  }
}

template <class Backend, class T>
void clamps_to_the_largest(Backend& backend) {
  const std::vector<double> clamped = NonFiniteCase<Backend, T>(backend, {1, -1e6, kInfinity, 2}).clamp();
  EXPECT_EQ(clamped, (std::vector<double>{1, -1e6, 1e6, 2}));
  EXPECT_EQ((NonFiniteCase<Backend, T>(backend, {1, 2, 3}).clamp()), (std::vector<double>{1, 2, 3}));
}

template <class Backend>
class NonFiniteElements : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(NonFiniteElements, testing::Backends, testing::BackendNames);

TYPED_TEST(NonFiniteElements, AreFoundFromTheFirstOn) {
  finds_the_first<TypeParam, float>(this->backend());
  finds_the_first<TypeParam, Float16>(this->backend());
  finds_the_first<TypeParam, double>(this->backend());
}

TYPED_TEST(NonFiniteElements, AreFoundInSpansThatBeginAnywhere) {
  finds_in_elements_that_begin_anywhere<TypeParam, float>(this->backend());
  finds_in_elements_that_begin_anywhere<TypeParam, Float16>(this->backend());
}

TYPED_TEST(NonFiniteElements, AreClamped) {
  clamps<TypeParam, float>(this->backend());
  clamps<TypeParam, Float16>(this->backend());
  clamps<TypeParam, double>(this->backend());
}

TYPED_TEST(NonFiniteElements, AreClampedToTheLargestMagnitude) {
  clamps_to_the_largest<TypeParam, float>(this->backend());
  clamps_to_the_largest<TypeParam, double>(this->backend());
}

TEST(FiniteElements, AreNotCopiedToBeClamped) {
  CpuExecutor executor(2);
  const std::vector<float> values(1000, 1);
  const HostSpan<const float> given(values.data(), values.size());
  EXPECT_EQ(clamp_non_finite<float>(executor, given).data(), values.data());
}

}  // namespace
}  // namespace cumulus
