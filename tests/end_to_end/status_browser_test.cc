// The status page as a browser shows it: headless Chromium, where there is one.
#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <string>
#include <vector>

#include "cumulus/client.h"
#include "cumulus/summed_area_table.h"
#include "cumulus/v1/sessions.grpc.pb.h"
#include "tests/end_to_end/program.h"

namespace cumulus::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kSide = 64;
const std::vector<float> kImage(kSide* kSide * 3, 0.5F);

/// A daemon with a status page, which Chromium looks at.
class StatusInABrowser : public ::testing::Test {
 protected:
  void SetUp() override {
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    if (std::system("command -v chromium >/dev/null") != 0) GTEST_SKIP() << "there is no chromium";
  }

  const std::string& daemon() const { return daemon_.address(); }

  std::string page_address() {
    const std::regex line("pages at (http://127\\.0\\.0\\.1:[0-9]+/)\n");
    std::smatch parts;
    for (int i = 0; i < 400; ++i) {
      const std::string log = daemon_.program().errors();
      if (std::regex_search(log, parts, line)) return parts[1];
      absl::SleepFor(absl::Milliseconds(25));
    }
    ADD_FAILURE() << "the log names no page";
    return "";
  }

  /// The page's elements after so many seconds of a page's time, which stands still while it waits for the
  /// daemon.
  std::string elements_after(int seconds) {
    const Ended browser = Program("/usr/bin/env", {"chromium", "--headless", "--no-sandbox", "--disable-gpu",
                                                   "--user-data-dir=" + (folder_ / "profile"),
                                                   absl::StrCat("--virtual-time-budget=", 1000 * seconds),
                                                   "--dump-dom", page_address()})
                              .wait();
    EXPECT_EQ(browser.exit_code, 0) << browser.errors;
    return browser.output;
  }

 private:
  const TemporaryFolder folder_;
  Daemon daemon_{{"--status-address", "127.0.0.1:0"}};
};

/// The cells of the table `id`.
std::string table(const std::string& page, const std::string& id) {
  const std::size_t begin = page.find("<tbody id=\"" + id + "\">");
  if (begin == std::string::npos) return "";
  return page.substr(begin, page.find("</tbody>", begin) - begin);
}

TEST_F(StatusInABrowser, ShowsWhatTheServerDoesAndGoesOnLooking) {
  const Client client = Client::connect(daemon()).value();
  const Session session = client.create_session().value();
  const auto image = session.upload(ArrayView(kImage, {kSide, kSide, 3}));
  ASSERT_TRUE(image.ok()) << image.status();
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(session.run(filter_box(*image, {1})).ok());

  const std::string page = elements_after(4);
  EXPECT_THAT(page, HasSubstr(">serving</span>"));
  EXPECT_THAT(table(page, "devices"), HasSubstr("<b>cpu</b>"));
  EXPECT_THAT(table(page, "sessions"), HasSubstr("127.0.0.1"));
  EXPECT_THAT(table(page, "sessions"), HasSubstr("<img src=\"/pictures/"));
  EXPECT_THAT(table(page, "sessions"), Not(HasSubstr("hidden")));  // what could not be loaded is hidden
  // Calls a second are those since the script looked last, and since the start at its first look.
  EXPECT_THAT(table(page, "calls"), HasSubstr("<td>FilterBox</td><td class=\"number\">0.0</td>"));
  EXPECT_THAT(table(page, "calls"), HasSubstr("<div class=\"histogram\">"));
}

TEST_F(StatusInABrowser, MakesNoElementsOfWhatAClientSays) {
  const auto channel = grpc::CreateChannel(daemon(), grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  v1::GetSessionRequest request;
  request.set_name("sessions/<img src=x><script>document.title='taken'</script>");
  v1::Session session;
  EXPECT_FALSE(v1::Sessions::NewStub(channel)->GetSession(&context, request, &session).ok());

  const std::string page = elements_after(2);
  EXPECT_THAT(page, HasSubstr("<title>cumulusd</title>"));
  EXPECT_THAT(table(page, "errors"), HasSubstr("NOT_FOUND"));
  EXPECT_THAT(table(page, "errors"), HasSubstr("&lt;img src=x&gt;&lt;script&gt;"));
  EXPECT_THAT(table(page, "errors"), Not(HasSubstr("<img")));
}

}  // namespace
}  // namespace cumulus::testing
