#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "cumulus/array.h"
#include "cumulus/errors.h"
#include "cumulus/v1/operations.pb.h"
#include "library/uuid.h"
#include "library/wire.h"
#include "server/pipeline/errors.h"

namespace cumulus {
namespace {

TEST(Uuid, HasTheFormOfVersionFour) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string uuid = make_uuid();
    ASSERT_EQ(uuid.size(), 36U);
    for (const std::size_t dash : {8U, 13U, 18U, 23U}) EXPECT_EQ(uuid[dash], '-') << uuid;
    EXPECT_EQ(uuid.find_first_not_of("0123456789abcdef-"), std::string::npos) << uuid;
    EXPECT_EQ(uuid[14], '4') << uuid;
    EXPECT_NE(std::string("89ab").find(uuid[19]), std::string::npos) << uuid;
    EXPECT_TRUE(seen.insert(uuid).second) << uuid;
  }
}

TEST(Array, CountsElementsOrSaysWhyNot) {
  EXPECT_EQ(*element_count({}), 1);
  EXPECT_EQ(*element_count({3, 4, 5}), 60);
  EXPECT_EQ(*element_count({std::int64_t{1} << 62, 0, std::int64_t{1} << 62}), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(element_count({3, -1}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(element_count({std::int64_t{1} << 32, std::int64_t{1} << 31}).status()));
  EXPECT_TRUE(
      absl::IsResourceExhausted(Array::allocate(ElementType::kFloat64, {std::int64_t{1} << 62}).status()));
}

TEST(WireSpec, KeepsEveryElementType) {
  for (const ElementType type : {ElementType::kUint8, ElementType::kUint16, ElementType::kUint32,
                                 ElementType::kUint64, ElementType::kInt32, ElementType::kInt64,
                                 ElementType::kFloat16, ElementType::kFloat32, ElementType::kFloat64}) {
    v1::ArraySpec spec;
    wire::encode_spec(type, {2, 3}, spec);
    const auto back = wire::decode_spec(spec);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->type, type);
    EXPECT_EQ(back->shape, (Shape{2, 3}));
  }
  EXPECT_TRUE(absl::IsInternal(wire::decode_spec(v1::ArraySpec()).status()));
}

/// The client puts the options in front of an encoded request, which is right only in this shape.
TEST(WireOperations, EveryRequestBeginsWithItsOptions) {
  (void)v1::BuildSamplingTableRequest::default_instance();  // links the generated descriptors
  const auto* service =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName("cumulus.v1.Operations");
  ASSERT_NE(service, nullptr);
  for (int i = 0; i < service->method_count(); ++i) {
    const auto* options = service->method(i)->input_type()->FindFieldByNumber(1);
    ASSERT_NE(options, nullptr) << service->method(i)->name();
    EXPECT_EQ(options->name(), "options") << service->method(i)->name();
    EXPECT_EQ(options->message_type()->full_name(), "cumulus.v1.RequestOptions")
        << service->method(i)->name();
  }
}

TEST(Errors, CarryEveryDetailOfTheServer) {
  const auto received = [](const absl::Status& sent) {
    return wire::status_from_grpc(server::to_grpc(sent));
  };
  const absl::Status exhausted = received(server::exhausted("device:cuda0", "64 GiB are too many"));
  EXPECT_TRUE(absl::IsResourceExhausted(exhausted));
  const std::vector<QuotaViolation> quotas = quota_violations(exhausted);
  ASSERT_EQ(quotas.size(), 1U);
  EXPECT_EQ(quotas[0].subject, "device:cuda0");
  const absl::Status no_answer =
      received(server::no_answer("ALL_ZERO", "every weight is zero", {{"pixel", "7"}}));
  EXPECT_EQ(error_reason(no_answer), "ALL_ZERO");
  EXPECT_EQ(error_metadata(no_answer).at("pixel"), "7");
}

TEST(Errors, OfTheNetworkHaveNoDetails) {
  const absl::Status status = wire::status_from_grpc({grpc::StatusCode::UNAVAILABLE, "connection reset"});
  EXPECT_EQ(error_reason(status), "");
  EXPECT_TRUE(error_metadata(status).empty());
  EXPECT_TRUE(field_violations(status).empty());
  EXPECT_TRUE(quota_violations(status).empty());
  EXPECT_EQ(retry_delay(status), std::nullopt);
}

}  // namespace
}  // namespace cumulus
