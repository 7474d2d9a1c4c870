// As many samples as one call draws: more than numbers of 32 bits count the words of.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/sampling_table/sampling_table.h"
#include "tests/cases/sampling_table_case.h"
#include "tests/support/executors.h"
#include "tests/support/sampling_table_view.h"

namespace cumulus {
namespace {

using DeviceFloats = Span<float, Space::kDevice>;

class ManySamplesOnCuda : public testing::OnEveryBackend<testing::CudaBackend> {
 protected:
  /// Positions, directions and densities of a draw.
  struct Drawn {
    Memory<Space::kDevice> memory;
    std::size_t count;

    DeviceFloats position() const { return floats().subspan(0, 2 * count); }
    DeviceFloats direction() const { return floats().subspan(2 * count, 3 * count); }
    DeviceFloats pdf() const { return floats().subspan(5 * count, count); }

   private:
    DeviceFloats floats() const { return memory.as<float>(6 * count); }
  };

  Drawn draw(const std::vector<unsigned char>& table, const DrawParameters& parameters) {
    const auto count = static_cast<std::size_t>(parameters.count);
    Drawn drawn{executor().allocate(6 * count * sizeof(float)), count};
    testing::BackendArray<testing::CudaBackend, unsigned char> bytes(backend(), table);
    draw_samples(executor(), testing::view_of(table).header,
                 {reinterpret_cast<const std::byte*>(bytes.span().data()), bytes.span().size()}, parameters,
                 {drawn.position(), drawn.direction(), drawn.pdf()});
    executor().synchronize();
    return drawn;
  }

  std::vector<float> part(const DeviceFloats& all, std::size_t first, std::size_t count) {
    std::vector<float> host(count);
    executor().download({reinterpret_cast<const std::byte*>(all.data() + first), count * sizeof(float)},
                        {reinterpret_cast<std::byte*>(host.data()), count * sizeof(float)});
    executor().synchronize();
    return host;
  }
};

/// Takes 52 GB of the device's memory.
TEST_F(ManySamplesOnCuda, SlowAreThoseOfThePartsOfTheirSequence) {
  constexpr std::int64_t kTwoToThe31 = std::int64_t{1} << 31;
  constexpr std::int64_t kFew = 1001;
  // Where the number of the sample, or of a word of its position or direction, has one more bit.
  const std::int64_t middles[] = {kTwoToThe31 / 6, kTwoToThe31 / 4,     kTwoToThe31 / 3,
                                  kTwoToThe31 / 2, kTwoToThe31 / 3 * 2, kTwoToThe31 - kFew / 2 - 1};
  const auto map = testing::make_map<float>({45, 67}, 1, 0, testing::MapPattern::kSun);
  for (const int method : {5, 6, 1, 2}) {
    const std::vector<unsigned char> table = oracle_table(map, {.method = method}).bytes();
    for (const PointSequence sequence : {PointSequence::kSobol, PointSequence::kHammersley}) {
      const Drawn many =
          draw(table, {.count = kTwoToThe31, .sequence = sequence, .seed = 3, .total = kTwoToThe31});
      for (const std::int64_t middle : middles) {
        const auto first = static_cast<std::size_t>(middle - kFew / 2);
        const Drawn few = draw(table, {.count = kFew,
                                       .first_index = middle - kFew / 2,
                                       .sequence = sequence,
                                       .seed = 3,
                                       .total = kTwoToThe31});
        ASSERT_EQ(part(many.position(), 2 * first, 2 * kFew), part(few.position(), 0, 2 * kFew)) << middle;
        ASSERT_EQ(part(many.direction(), 3 * first, 3 * kFew), part(few.direction(), 0, 3 * kFew)) << middle;
        ASSERT_EQ(part(many.pdf(), first, kFew), part(few.pdf(), 0, kFew)) << middle;
      }
    }
  }
}

}  // namespace
}  // namespace cumulus
