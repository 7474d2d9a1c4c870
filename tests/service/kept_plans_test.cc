// Plans are kept for calls of the same shape, and for no others.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/operations/recursive_filter/apply.h"
#include "server/pipeline/planned.h"

namespace cumulus::server {
namespace {

using Op = ops::ApplyRecursiveFilter;
using Request = Op::Request;

InputArray image(std::int64_t height, std::int64_t width, v1::ElementType type = v1::FLOAT32) {
  return {"image", {type, {height, width}}, {}};
}

Request blur(double sigma) {
  Request request;
  for (v1::AxisFilter* axis : {request.mutable_y(), request.mutable_x()})
    axis->mutable_gaussian()->set_sigma(sigma);
  return request;
}

std::shared_ptr<const Planned<Op>> plan(const Request& request, const std::vector<InputArray>& inputs) {
  const auto planned = plan_of<Op>(request, inputs);
  EXPECT_TRUE(planned.ok()) << planned.status();
  return planned.ok() ? *planned : nullptr;
}

TEST(KeptPlans, AreThoseOfTheSameFilterAndShapeWhateverTheSource) {
  Request first = blur(8);
  first.mutable_image()->set_buffer("sessions/a/buffers/b");
  Request second = blur(8);
  second.mutable_image()->set_buffer("sessions/c/buffers/d");
  second.mutable_options()->set_session("sessions/c");
  const auto kept = plan(first, {image(50, 60)});
  EXPECT_EQ(kept, plan(second, {image(50, 60)}));
  EXPECT_NE(kept, plan(first, {image(60, 50)}));
  EXPECT_NE(kept, plan(first, {image(50, 60, v1::FLOAT64)}));
  EXPECT_NE(kept, plan(blur(8.0000001), {image(50, 60)}));
  EXPECT_EQ(kept, plan(first, {image(50, 60)}));
}

TEST(KeptPlans, HaveAKeyOfEachFieldThatIsThere) {
  const std::vector<InputArray> inputs = {image(50, 60)};
  std::vector<Request> requests(9, blur(8));
  requests[1].set_weight(0);
  requests[2].set_weight(1);
  requests[3].set_tell_method(true);
  requests[4].set_max_truncation_error(0);
  requests[5].mutable_accumulate();
  requests[6].set_method(v1::FILTER_TILED);
  requests[7].mutable_x()->set_boundary(v1::FILTER_MIRROR);
  requests[8].clear_x();
  std::set<std::string> keys;
  for (const Request& request : requests) keys.insert(plan_key(request, inputs));
  keys.insert(plan_key(requests[0], std::vector<InputArray>{image(50, 60), image(50, 60)}));
  EXPECT_EQ(keys.size(), requests.size() + 1);
}

TEST(KeptPlans, AreTheLatest) {
  const auto first = plan(blur(3), {image(7, 7)});
  for (std::size_t i = 0; i < KeptPlans<Op>::kMaxPlans; ++i)
    (void)plan(blur(3), {image(7, static_cast<std::int64_t>(8 + i))});
  EXPECT_NE(first, plan(blur(3), {image(7, 7)}));
}

TEST(KeptPlans, AreNoneOfWhatIsRefused) {
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(plan_of<Op>(blur(-1), std::vector{image(7, 7)}).ok());
}

TEST(KeptPlans, HaveTheScratchMemoryOfEachDevice) {
  const auto device = make_cpu_device({.threads = 1, .budget_bytes = 1 << 20, .landing_bytes = 4096});
  Request request = blur(8);
  for (v1::AxisFilter* axis : {request.mutable_y(), request.mutable_x()})
    axis->mutable_gaussian()->set_method(v1::GAUSSIAN_DERICHE);
  const std::vector<InputArray> inputs = {image(500, 600)};
  const auto fresh = make_planned<Op>(request, inputs);
  ASSERT_TRUE(fresh.ok());
  EXPECT_EQ(plan(request, inputs)->scratch_bytes(*device),
            Op::scratch_bytes<Space::kHost>((*fresh)->plan, device->numbers()));
}

}  // namespace
}  // namespace cumulus::server
