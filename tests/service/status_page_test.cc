#include "server/runtime/status_page/status_page.h"

#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "server/runtime/status_page/thumbnail.h"
#include "tests/support/operation_calls.h"
#include "tests/support/test_server.h"

namespace cumulus::testing {
namespace {

using google::protobuf::Value;
using ::testing::HasSubstr;
using ::testing::Not;

class StatusPageTest : public ::testing::Test {
 protected:
  /// Nothing where there is no such page.
  server::HttpAnswer get(const std::string& path) {
    return page_.answer({.path = path}).value_or(server::HttpAnswer{.code = 404});
  }
  google::protobuf::Struct status() {
    const std::string text = get("/status.json").body;
    google::protobuf::Struct status;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(text, &status).ok()) << text;
    return status;
  }
  static const google::protobuf::RepeatedPtrField<Value>& list(const google::protobuf::Struct& object,
                                                               const std::string& name) {
    return object.fields().at(name).list_value().values();
  }

  TestServer server_;
  server::StatusPage page_{server_.runtime};
};

TEST_F(StatusPageTest, IsWholeAndRunsItsOwnScriptAlone) {
  const server::HttpAnswer first = get("/");
  EXPECT_EQ(first.type, "text/html; charset=utf-8");
  EXPECT_THAT(first.body, HasSubstr("</html>"));
  EXPECT_THAT(first.body, Not(HasSubstr("NONCE")));
  for (const char* outside : {"http:", "https:", "src=\"", "@import", "url("})
    EXPECT_THAT(first.body, Not(HasSubstr(outside)));
  ASSERT_FALSE(first.headers.empty());
  EXPECT_EQ(first.headers[0].first, "Content-Security-Policy");
  const std::string& policy = first.headers[0].second;
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
  const std::string marker = "script-src 'nonce-";
  const std::string nonce = policy.substr(policy.find(marker) + marker.size(), 32);
  EXPECT_THAT(first.body, HasSubstr("<script nonce=\"" + nonce + "\">"));
  EXPECT_THAT(get("/").body, Not(HasSubstr(nonce)));
}

TEST_F(StatusPageTest, ShowsSessionsWithoutTheirHandles) {
  const std::string session = server_.create_session();
  CallMaker maker(server_, session);
  maker.put_floats({8, 8});
  const auto shown = status();
  EXPECT_EQ(list(shown, "devices").size(), 1);
  ASSERT_EQ(list(shown, "sessions").size(), 1);
  const auto& row = list(shown, "sessions")[0].struct_value().fields();
  EXPECT_EQ(row.at("buffers").number_value(), 1);
  EXPECT_GT(row.at("used").number_value(), 8 * 8 * 4 - 1);
  EXPECT_EQ(row.at("principal").string_value(), "local");
  EXPECT_EQ(session.rfind("sessions/" + row.at("name").string_value(), 0), 0U);
  EXPECT_THAT(get("/status.json").body, Not(HasSubstr(session.substr(session.find('/') + 1))));
}

TEST_F(StatusPageTest, ShowsErrorsWhateverAClientSaid) {
  grpc::ClientContext context;
  v1::GetSessionRequest request;
  request.set_name("sessions/\"</script><script>alert(1)\n");
  v1::Session session;
  server_.sessions->GetSession(&context, request, &session);
  const auto shown = status();
  ASSERT_EQ(list(shown, "errors").size(), 1);
  const auto& row = list(shown, "errors")[0].struct_value().fields();
  EXPECT_EQ(row.at("method").string_value(), "GetSession");
  EXPECT_EQ(row.at("code").string_value(), "NOT_FOUND");
  EXPECT_THAT(row.at("message").string_value(), HasSubstr("<script>alert(1)"));
}

TEST_F(StatusPageTest, PicturesAreShownToThoseOnlyWhoMaySeeThem) {
  CallMaker maker(server_, server_.create_session());
  maker.put_floats({200, 100, 3});
  const auto hidden = status();
  EXPECT_EQ(list(list(hidden, "sessions")[0].struct_value(), "images").size(), 0);
  page_.show_pictures(true);
  const auto shown = status();
  const auto& images = list(list(shown, "sessions")[0].struct_value(), "images");
  ASSERT_EQ(images.size(), 1);
  const std::string path = "/pictures/" + images[0].struct_value().fields().at("key").string_value();
  const server::HttpAnswer picture = get(path);
  EXPECT_EQ(picture.type, "image/bmp");
  EXPECT_EQ(picture.body.substr(0, 2), "BM");
  EXPECT_EQ(get("/pictures/0123456789abcdef").code, 404);
  EXPECT_EQ(get("/pictures/").code, 404);
  page_.show_pictures(false);
  EXPECT_EQ(get(path).code, 404);
}

TEST_F(StatusPageTest, AThumbnailHasThePicturesColours) {
  CallMaker maker(server_, server_.create_session());
  std::vector<std::uint8_t> pixels;  // the upper half red, the lower blue
  for (int i = 0; i < 8 * 4; ++i) {
    const bool upper = i < 4 * 4;
    pixels.insert(pixels.end(), {static_cast<std::uint8_t>(upper ? 255 : 0), 0,
                                 static_cast<std::uint8_t>(upper ? 0 : 255)});
  }
  const std::string name = maker.put(v1::UINT8, {8, 4, 3}, pixels);
  const auto buffer = server_.runtime.sessions.find_buffer(name, {});
  ASSERT_TRUE(buffer.ok());
  const std::string file = server::thumbnail(*server_.slot().device, *buffer);
  ASSERT_EQ(file.size(), 54U + 8 * 12);
  EXPECT_EQ(file.substr(54, 3), std::string("\xff\0\0", 3));  // the lowest row first, and blue
  EXPECT_EQ(file.substr(54 + 7 * 12, 3), std::string("\0\0\xff", 3));
}

TEST_F(StatusPageTest, ThumbnailsTakeAnyNumbers) {
  CallMaker maker(server_, server_.create_session());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinite = std::numeric_limits<float>::infinity();
  const std::string name =
      maker.put(v1::FLOAT32, {2, 4}, std::vector<float>{nan, infinite, -infinite, -1, 0, 1e30F, 1, 2});
  const auto buffer = server_.runtime.sessions.find_buffer(name, {});
  ASSERT_TRUE(buffer.ok());
  EXPECT_EQ(server::thumbnail(*server_.slot().device, *buffer).size(), 54U + 2 * 12);
}

TEST(Pictures, AreArraysThatLookLikeImages) {
  EXPECT_TRUE(server::is_picture({v1::FLOAT32, {2, 2}}));
  EXPECT_TRUE(server::is_picture({v1::UINT8, {4096, 8192, 4}}));
  EXPECT_FALSE(server::is_picture({v1::FLOAT32, {100}}));
  EXPECT_FALSE(server::is_picture({v1::FLOAT32, {1, 1000}}));
  EXPECT_FALSE(server::is_picture({v1::FLOAT32, {10, 10, 5}}));
  EXPECT_FALSE(server::is_picture({v1::UINT64, {10, 10}}));
  EXPECT_FALSE(server::is_picture({v1::FLOAT32, {10, 10, 1, 1}}));
  EXPECT_FALSE(server::is_picture({v1::FLOAT32, {0, 0}}));
  EXPECT_FALSE(server::is_picture({v1::FLOAT64, {2, std::int64_t{1} << 40}}));
}

}  // namespace
}  // namespace cumulus::testing
