// What decoding in processes is for: an image can end, slow down or fill nothing but its own worker.
#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "server/runtime/decode/png_chunks.h"
#include "server/runtime/decode/system_calls.h"
#include "server/runtime/image_decoder.h"
#include "tests/support/decode_helper.h"
#include "tests/support/hostile_files.h"
#include "tests/support/png_files.h"
#include "tests/support/process_tree.h"

namespace cumulus::server {
namespace {

using ::testing::HasSubstr;

ImageLimits limits() {
  return {.max_pixels = std::size_t{1} << 24,
          .max_channels = 16,
          .max_bytes = std::size_t{1} << 28,
          .working_bytes = std::size_t{32} << 20,
          .processor_time = absl::Seconds(10)};
}

/// The processes that decode for this one now, or wait for an image; the oldest comes first.
std::vector<pid_t> workers() {
  std::vector<pid_t> result;
  for (const pid_t helper : testing::children_of(::getpid())) {
    for (const pid_t worker : testing::children_of(helper)) result.push_back(worker);
  }
  return result;
}

/// Waits until there is none but the one that waits for the next image; false where that takes more than
/// seconds.
bool have_ended() {
  // The helper is through with what it was told before.
  const auto worker =
      testing::decode_helper()->start_worker("png", {limits().working_bytes, limits().processor_time});
  if (!worker.ok() || !DecodeHelper::end_worker(*worker).ok()) return false;
  const absl::Time end = absl::Now() + absl::Seconds(5);
  while (workers().size() != 1 && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
  return workers().size() == 1;
}

absl::StatusOr<DecodedImage> decode(const std::string& file, const DecodeControl& control = {},
                                    const ImageLimits& bounds = limits()) {
  v1::EncodedImage image;
  image.set_data(file);
  return decode_image(*testing::decode_helper(), image, {image.data()}, bounds, "image.encoded", control);
}

/// A Radiance picture of 2 x 2 ones.
std::string small_picture() {
  std::string file = "#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 2 +X 2\n";
  for (int pixel = 0; pixel < 4; ++pixel) file += "\x80\x80\x80\x81";
  return file;
}

/// Decodes a good picture, whose worker `signal` meets between header and pixels.
absl::Status decode_with_signal(int signal, const std::function<absl::Status()>& wanted = {}) {
  EXPECT_TRUE(have_ended());
  const auto send = [signal](std::size_t) {
    ::kill(workers().at(0), signal);
    return absl::OkStatus();
  };
  return decode(small_picture(), {.admit = send, .wanted = wanted}).status();
}

#ifdef CUMULUS_TEST_OPENIMAGEIO

TEST(DecodeProcess, ThatCrashesIsTheFaultOfItsImageAlone) {
  const absl::Status status = decode_with_signal(SIGABRT);  // AddressSanitizer turns SIGSEGV into an exit
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("made its decoder end (Aborted)"));
  EXPECT_TRUE(decode(small_picture()).ok());
  EXPECT_TRUE(have_ended());
}

TEST(DecodeProcess, ThatComputesTooLongIsOverALimit) {
  const absl::Status status = decode_with_signal(SIGXCPU);  // which the limit sends
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("takes more than 10s of processor time to decode (decode_time)"));
  EXPECT_TRUE(decode(small_picture()).ok());
}

TEST(DecodeProcess, IsGoneOnceNobodyWantsItsImage) {
  absl::Time start;
  const auto wanted = [&] {
    start = absl::Now();
    return absl::CancelledError("enough");
  };
  EXPECT_EQ(decode_with_signal(SIGSTOP, wanted).message(), "enough");
  EXPECT_LT(absl::Now() - start, absl::Seconds(1));
  EXPECT_TRUE(have_ended());
}

TEST(DecodeProcess, IsConfinedAndBounded) {
  ASSERT_TRUE(have_ended());
  std::string status;
  std::string bounds;
  const auto look = [&](std::size_t) {
    const pid_t worker = workers().at(0);
    status = testing::text_of_file(absl::StrCat("/proc/", worker, "/status"));
    bounds = testing::text_of_file(absl::StrCat("/proc/", worker, "/limits"));
    return absl::OkStatus();
  };
  ASSERT_TRUE(decode(small_picture(), {.admit = look}).ok());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1\n"));
  EXPECT_THAT(status, HasSubstr("Seccomp:\t2\n"));  // a filter
  EXPECT_THAT(bounds, ::testing::Not(::testing::ContainsRegex("Max address space +unlimited")));
#endif
  EXPECT_THAT(bounds, ::testing::ContainsRegex("Max cpu time +10 +11 "));
  EXPECT_THAT(bounds, ::testing::ContainsRegex("Max file size +0 +0 "));
  EXPECT_THAT(bounds, ::testing::ContainsRegex("Max core file size +0 +0 "));
}

TEST(DecodeProcess, WaitsForItsImage) {
  ASSERT_TRUE(have_ended());
  const pid_t waiting = workers().at(0);
  pid_t working = 0;
  const auto look = [&](std::size_t) {
    working = workers().at(0);
    return absl::OkStatus();
  };
  ASSERT_TRUE(decode(small_picture(), {.admit = look}).ok());
  EXPECT_EQ(working, waiting);
  EXPECT_TRUE(have_ended());
  EXPECT_NE(workers().at(0), waiting);
}

TEST(DecodeProcess, WaitsForNoImageWithOtherBounds) {
  ASSERT_TRUE(have_ended());
  const pid_t waiting = workers().at(0);
  ImageLimits longer = limits();
  longer.processor_time = absl::Seconds(20);
  std::string bounds;
  const auto look = [&](std::size_t) {
    const absl::Time end = absl::Now() + absl::Seconds(5);
    while (workers().at(0) == waiting && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
    bounds = testing::text_of_file(absl::StrCat("/proc/", workers().at(0), "/limits"));
    return absl::OkStatus();
  };
  ASSERT_TRUE(decode(small_picture(), {.admit = look}, longer).ok());
  EXPECT_THAT(bounds, ::testing::ContainsRegex("Max cpu time +20 +21 "));
}

TEST(DecodeProcess, ThatIsKilledWhileItWaitsIsNoImagesFault) {
  ASSERT_TRUE(have_ended());
  const pid_t waiting = workers().at(0);
  ::kill(waiting, SIGKILL);
  const std::string status = absl::StrCat("/proc/", waiting, "/status");
  while (testing::text_of_file(status).find("State:\tZ") == std::string::npos)
    absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(decode(small_picture()).ok());
}

/// The process that starts the workers.
pid_t helper() {
  const std::vector<pid_t> children = testing::children_of(::getpid());
  EXPECT_EQ(children.size(), 1u);
  return children.at(0);
}

TEST(DecodeHelper, ThatIsKilledBetweenImagesComesBack) {
  ASSERT_TRUE(decode(small_picture()).ok());
  const pid_t first = helper();
  ::kill(first, SIGKILL);
  const absl::Status status = decode(small_picture()).status();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_NE(helper(), first);
  EXPECT_TRUE(have_ended());
}

TEST(DecodeHelper, ThatIsKilledWithAnImageComesBackForTheNext) {
  ASSERT_TRUE(decode(small_picture()).ok());
  ASSERT_TRUE(have_ended());
  const auto kill_helper = [](std::size_t) {
    ::kill(workers().at(0), SIGSTOP);  // or it could be done before it is gone
    ::kill(helper(), SIGKILL);
    return absl::OkStatus();
  };
  const absl::Status status = decode(small_picture(), {.admit = kill_helper}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("is started anew: try again"));
  EXPECT_TRUE(decode(small_picture()).ok());
  EXPECT_TRUE(have_ended());
}

TEST(DecodeHelper, SlowToAnswerIsReplaced) {
  DecodeHelper impatient(absl::Seconds(10));  // which the module needs on a busy machine
  v1::EncodedImage image;
  image.set_data(small_picture());
  const auto decode_now = [&] {
    return decode_image(impatient, image, {image.data()}, limits(), "image.encoded").status();
  };
  const std::vector<pid_t> before = testing::children_of(::getpid());
  ASSERT_TRUE(decode_now().ok());
  for (const pid_t child : testing::children_of(::getpid())) {
    if (std::find(before.begin(), before.end(), child) == before.end()) ::kill(child, SIGSTOP);
  }
  const absl::Status status = decode_now();
  EXPECT_TRUE(status.ok()) << status;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(DecodeProcess, TakesNoMoreMemoryThanItsBoundForAHeader) {
  const absl::Status status = decode(testing::exr_with_a_huge_attribute()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("takes more than the 33554432 bytes that reading it may take (decoder_bytes)"));
}

/// How a process ends that does `what` once it is confined: 0, or 128 and the signal.
int confined(const std::function<bool()>& what) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(confine_process() ? (what() ? 0 : 1) : 2);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(DecodeProcess, MayComputeAndOpenNothing) {
  EXPECT_EQ(confined([] { return std::vector<int>(1 << 20, 1).back() == 1; }), 0);
  EXPECT_EQ(confined([] { return ::open("/etc/passwd", O_RDONLY) == -1 && errno == EACCES; }), 0);
  EXPECT_EQ(confined([] { return ::open("/tmp/x", O_WRONLY | O_CREAT, 0600) == -1 && errno == EACCES; }), 0);
  EXPECT_EQ(confined([] { return ::socket(AF_INET, SOCK_STREAM, 0) >= 0; }), 128 + SIGSYS);
  EXPECT_EQ(confined([] { return ::fork() >= 0; }), 128 + SIGSYS);
  EXPECT_EQ(confined([] { return ::kill(::getppid(), 0) == 0; }), 128 + SIGSYS);
  EXPECT_EQ(confined([] {
              return ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
                     MAP_FAILED;
            }),
            128 + SIGSYS);
}
#endif

#endif

/// A gray picture of 2 x 1 pixels, 10 and 20, with these chunks before its pixels.
std::string png_with(const std::string& chunks) {
  return testing::png_file(2, 1, std::string("\0\x0a\x14", 3), chunks);
}

std::string joined(const std::vector<std::string_view>& pieces) {
  std::string all;
  for (const std::string_view piece : pieces) all += piece;
  return all;
}

TEST(PngChunks, LeaveOutWhatChangesNoPixel) {
  EXPECT_EQ(joined(parse_png_chunks(png_with(testing::png_texts())).kept), png_with(""));
  const std::string gamma = testing::png_chunk("gAMA", testing::big_endian(45455));
  EXPECT_EQ(joined(parse_png_chunks(png_with(gamma + gamma)).kept), png_with(gamma));
  const std::string transparent = testing::png_chunk("tRNS", std::string("\0\x0a", 2));
  EXPECT_EQ(joined(parse_png_chunks(png_with(transparent)).kept), png_with(transparent));
}

TEST(PngChunks, SayTheSize) {
  const auto size = parse_png_chunks(png_with("")).size;
  ASSERT_TRUE(size);
  EXPECT_EQ(size->width, 2u);
  EXPECT_EQ(size->height, 1u);
  EXPECT_EQ(size->channels, 1);
  EXPECT_EQ(size->bytes_per_channel, 1);
}

TEST(PngChunks, KeepWhatIsDamagedForTheReader) {
  const std::string whole = png_with("");
  for (std::size_t kept = 8; kept < whole.size(); ++kept) {
    const std::string part = whole.substr(0, kept);
    EXPECT_EQ(joined(parse_png_chunks(part).kept), part) << kept;
  }
  // Of a chunk that changes no pixel, too: what it lacks is not to be looked for behind the file's end.
  const std::string text = testing::png_chunk("tEXt", "note");
  const std::string begun = png_with(text).substr(0, 8 + 25 + 13);
  EXPECT_EQ(joined(parse_png_chunks(begun).kept), begun);
  const std::string endless = png_with("").substr(0, 8) + testing::big_endian(0xFFFFFFFF) + "IHDRabcdefgh";
  EXPECT_EQ(joined(parse_png_chunks(endless).kept), endless);
}

#ifdef CUMULUS_TEST_OPENIMAGEIO

TEST(DecodeProcess, InflatesNoTextsOfAPng) {
  const absl::Time start = absl::Now();
  const auto image = decode(png_with(testing::png_texts()));
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(static_cast<int>(image->pixels.data()[1]), 20);
  // Inflating them takes 12 s and more.
  EXPECT_LT(absl::Now() - start, absl::Seconds(3));
}

TEST(DecodeProcess, IsNotStartedForAPngThatSaysItIsTooLarge) {
  ImageLimits one_pixel = limits();
  one_pixel.max_pixels = 1;
  const std::string header_alone = png_with("").substr(0, 8 + 25);
  const absl::Status status = decode(header_alone + testing::png_texts(), {}, one_pixel).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("is 2 x 1 = 2 pixels; at most 1 (max_pixels) are decoded"));
}

#endif

}  // namespace
}  // namespace cumulus::server
