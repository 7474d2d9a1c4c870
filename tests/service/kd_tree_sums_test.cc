#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/service/kd_tree_fixture.h"

namespace cumulus {
namespace {

using testing::expect_bad_field;
using testing::find_array;
using testing::KdTreeService;
using testing::neighbors_by_brute_force;
using testing::set_inline;
using testing::values_of;

class KdTreeSumsService : public KdTreeService {
 protected:
  /// Asks for four nearest; each point's row has two whole numbers, so that their sums are exact.
  v1::FindNeighborsRequest question_of_sums() {
    v1::FindNeighborsRequest request = question();
    set_inline(*request.mutable_payload(), v1::FLOAT32, {500, 2}, payload_);
    return request;
  }
  static std::vector<float> make_payload() {
    std::vector<float> rows;
    for (int i = 0; i < 500; ++i) {
      rows.push_back(static_cast<float>(i));
      rows.push_back(static_cast<float>(1 + i % 7));
    }
    return rows;
  }
  template <class T>
  std::vector<T> result(const std::string& name) {
    return values_of<T>(find_array(result_, name)->inline_array());
  }
  float sum(const std::vector<testing::Neighbor<float>>& neighbors, std::size_t count, std::size_t channel) {
    float sum = 0;
    for (std::size_t i = 0; i < count; ++i)
      sum += payload_[2 * static_cast<std::size_t>(neighbors[i].index) + channel];
    return sum;
  }

  const std::vector<float> payload_ = make_payload();
};

TEST_F(KdTreeSumsService, SumsThePayloadOfTheNearest) {
  v1::FindNeighborsRequest request = question_of_sums();
  request.set_squared(true);
  std::vector<float> radii(10, std::numeric_limits<float>::infinity());
  radii[3] = 0;
  set_inline(*request.mutable_radii(), v1::FLOAT32, {10}, radii);
  const grpc::Status status = find(request);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(result_.arrays_size(), 2);
  const auto sums = result<float>("sums");
  const auto distances = result<float>("distances");
  ASSERT_EQ(sums.size(), 20u);
  ASSERT_EQ(distances.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i) {
    const auto right = neighbors_by_brute_force(cloud_, 3, queries_.data() + 3 * i, radii[i], {});
    const bool enough = right.size() >= 4;
    EXPECT_EQ(enough, i != 3);
    EXPECT_EQ(sums[2 * i], enough ? sum(right, 4, 0) : 0);
    EXPECT_EQ(sums[2 * i + 1], enough ? sum(right, 4, 1) : 0);
    EXPECT_EQ(distances[i], enough ? right[3].squared_distance : std::numeric_limits<float>::infinity());
  }
}

TEST_F(KdTreeSumsService, SumsThePayloadWithinARadius) {
  v1::FindNeighborsRequest request = question_of_sums();
  request.set_radius(0.25);
  request.mutable_counts();
  ASSERT_TRUE(find(request).ok());
  const auto sums = result<float>("sums");
  const auto counts = result<std::int64_t>("counts");
  ASSERT_EQ(sums.size(), 20u);
  for (std::size_t i = 0; i < 10; ++i) {
    const auto right = neighbors_by_brute_force(cloud_, 3, queries_.data() + 3 * i, 0.25f, {});
    EXPECT_EQ(counts[i], static_cast<std::int64_t>(right.size()));
    EXPECT_EQ(sums[2 * i], sum(right, right.size(), 0));
    EXPECT_EQ(sums[2 * i + 1], sum(right, right.size(), 1));
  }
}

TEST_F(KdTreeSumsService, SumsAreAsWideAsThePayload) {
  v1::FindNeighborsRequest request = question();
  set_inline(*request.mutable_payload(), v1::FLOAT32, {500}, std::vector<float>(500, 1.0f));
  ASSERT_TRUE(find(request).ok());
  const v1::ArraySpec& spec = find_array(result_, "sums")->inline_array().spec();
  EXPECT_EQ(std::vector<std::int64_t>(spec.shape().begin(), spec.shape().end()),
            std::vector<std::int64_t>{10});
  EXPECT_EQ(result<float>("sums"), std::vector<float>(10, 4.0f));
}

TEST_F(KdTreeSumsService, RefusesAPayloadThatDoesNotGoWithTheTree) {
  v1::FindNeighborsRequest request = question();
  set_inline(*request.mutable_payload(), v1::FLOAT32, {499}, std::vector<float>(499));
  expect_bad_field(find(request), "payload", "a row for each point, FLOAT32 [500] or [500, channels]");
  set_inline(*request.mutable_payload(), v1::FLOAT64, {500}, std::vector<double>(500));
  expect_bad_field(find(request), "payload", "FLOAT32");
  set_inline(*request.mutable_payload(), v1::FLOAT32, {500, 0}, std::vector<float>());
  expect_bad_field(find(request), "payload", "channels");
  set_inline(*request.mutable_payload(), v1::FLOAT32, {500}, std::vector<float>(500));
  request.mutable_lists()->set_max_neighbors(10);
  expect_bad_field(find(request), "payload", "`nearest` and `counts`");
}

TEST_F(KdTreeSumsService, ReadsNothingOutsideOfThePayload) {
  v1::FindNeighborsRequest request = question_of_sums();
  std::string& bytes = *request.mutable_tree()->mutable_idx_array()->mutable_inline_array()->mutable_data();
  std::vector<std::int64_t> indices(500, std::int64_t{1} << 40);
  for (std::size_t i = 0; i < indices.size(); i += 2) indices[i] = -5;
  bytes.assign(reinterpret_cast<const char*>(indices.data()), 500 * sizeof(std::int64_t));
  ASSERT_TRUE(find(request).ok());
  EXPECT_EQ(result<float>("sums"), std::vector<float>(20, 0.0f));
}

}  // namespace
}  // namespace cumulus
