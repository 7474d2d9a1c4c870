// The library's pipelines against a server.
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "cumulus/client.h"
#include "cumulus/errors.h"
#include "cumulus/pipeline.h"
#include "cumulus/sampling_table.h"
#include "cumulus/summed_area_table.h"
#include "tests/support/test_server.h"

namespace cumulus::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ClientPipeline : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<Client> client = Client::connect(absl::StrCat("127.0.0.1:", server_.port()));
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = std::make_unique<Client>(*std::move(client));
    absl::StatusOr<Session> session = client_->create_session();
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = std::make_unique<Session>(*std::move(session));
  }
  static ArrayView map() {
    static const std::vector<float> texels = [] {
      std::vector<float> values(32 * 64);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7919 % 61);
      return values;
    }();
    return {texels, {32, 64}};
  }
  std::vector<float> fetch(Result& result, const std::string& name) {
    const absl::StatusOr<Array> array = result.fetch(name);
    EXPECT_TRUE(array.ok()) << array.status();
    if (!array.ok()) return {};
    const auto values = *array->values<float>();
    return {values.begin(), values.end()};
  }

  TestServer server_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Session> session_;
};

TEST_F(ClientPipeline, GivesWhatSeparateCallsGive) {
  const absl::StatusOr<Buffer> uploaded = session_->upload(map());
  ASSERT_TRUE(uploaded.ok()) << uploaded.status();
  const absl::StatusOr<Buffer> radii = session_->upload(map());
  ASSERT_TRUE(radii.ok()) << radii.status();
  const BoxFilterOptions plain{.radius = 2};
  BoxFilterOptions mapped{.radius = 9};
  mapped.radius_map = *radii;

  Pipeline pipeline;
  const auto box = pipeline.add(filter_box(*uploaded, plain));
  const auto varying = pipeline.add(filter_box(*uploaded, mapped));  // two buffers, of which one comes again
  const auto table = pipeline.add(build_sampling_table(box["image"]));
  const auto drawn = pipeline.add(draw_samples(table["table"], {.count = 100}));
  pipeline.keep(drawn["position"], "samples");
  pipeline.keep(varying["image"]);
  absl::StatusOr<Result> chained = session_->run(pipeline);
  ASSERT_TRUE(chained.ok()) << chained.status();
  EXPECT_THAT(chained->names(), ElementsAre("samples", "image"));

  const absl::StatusOr<Result> boxed = session_->run(filter_box(*uploaded, plain));
  absl::StatusOr<Result> varied = session_->run(filter_box(*uploaded, mapped));
  const absl::StatusOr<Result> built = session_->run(build_sampling_table(*boxed->buffer("image")));
  absl::StatusOr<Result> separate = session_->run(draw_samples(*built->buffer("table"), {.count = 100}));
  ASSERT_TRUE(separate.ok()) << separate.status();
  EXPECT_EQ(fetch(*chained, "samples"), fetch(*separate, "position"));
  EXPECT_EQ(fetch(*chained, "image"), fetch(*varied, "image"));
}

TEST_F(ClientPipeline, RunsAgainAndWithoutASession) {
  Pipeline pipeline;
  const auto box = pipeline.add(filter_box(map(), {.radius = 2}));
  const auto again = pipeline.add(filter_box(box["image"], {.radius = 1}));
  pipeline.keep(again["image"]);
  absl::StatusOr<Result> first = client_->run(pipeline);
  ASSERT_TRUE(first.ok()) << first.status();
  pipeline.keep(box["image"], "once");
  absl::StatusOr<Result> second = session_->run(pipeline);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT(second->names(), ElementsAre("image", "once"));
  EXPECT_EQ(fetch(*first, "image"), fetch(*second, "image"));
}

TEST_F(ClientPipeline, AMistakeIsNamedByItsPlace) {
  Pipeline pipeline;
  const auto box = pipeline.add(filter_box(map(), {.radius = 2}));
  pipeline.add(filter_box(box["image"], {.radius = -1}));
  pipeline.keep(box["image"]);
  const absl::StatusOr<Result> refused = session_->run(pipeline);
  ASSERT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(field_violations(refused.status()).size(), 1U);
  EXPECT_EQ(field_violations(refused.status()).front().field, "steps[1].filter_box.radius");
}

TEST_F(ClientPipeline, APipelineIsNoStep) {
  Pipeline inner;
  inner.keep(inner.add(filter_box(map(), {.radius = 2}))["image"]);
  Pipeline outer;
  outer.keep(outer.add(inner)["image"]);
  EXPECT_THAT(std::string(session_->run(outer).status().message()), HasSubstr("steps[0]: is missing"));
}

}  // namespace
}  // namespace cumulus::testing
