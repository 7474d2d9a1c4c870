// Whole run-length jobs: the real command line and the client library against the real daemon.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "cumulus/client.h"
#include "cumulus/coco_masks.h"
#include "cumulus/run_length_container.h"
#include "tests/end_to_end/json.h"
#include "tests/end_to_end/npy_file.h"
#include "tests/end_to_end/program.h"
#include "tests/end_to_end/served_jobs.h"

namespace cumulus::testing {
namespace {

class RunLengthJobs : public ServedJobs {
 protected:
  static Ended run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "--json");
    return ServedJobs::run(arguments);
  }
  static Client connect() { return *Client::connect(daemon_->address()); }
  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  std::string read(const std::string& name) { return read_file(folder_ / name); }

 private:
};
TEST_F(RunLengthJobs, KeepAnyFilesBytes) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) bytes.append(static_cast<std::size_t>(i * 7 % 2000), static_cast<char>(i));
  write("file", bytes);
  const Ended encoded = run({"run-length", "encode", "--raw", folder_ / "file", "-o", folder_ / "file.rle"});
  ASSERT_EQ(encoded.exit_code, 0) << encoded.errors;
  const Json report(encoded.output);
  EXPECT_EQ(report.text("stored_as"), "runs");
  EXPECT_EQ(report.number("array_bytes"), static_cast<double>(bytes.size()));
  EXPECT_EQ(report.number("container_bytes"), static_cast<double>(read("file.rle").size()));
  EXPECT_LT(read("file.rle").size(), bytes.size() / 50);
  const Ended decoded = run({"run-length", "decode", "--raw", folder_ / "file.rle", "-o", folder_ / "back"});
  ASSERT_EQ(decoded.exit_code, 0) << decoded.errors;
  EXPECT_TRUE(read("back") == bytes);
}

TEST_F(RunLengthJobs, KeepArraysOfEveryShapeAndType) {
  const auto expect_same = [&](const std::string& descr, const std::string& shape,
                               const std::string& options = "") {
    SCOPED_TRACE(descr + " " + shape + options);
    const std::size_t element_bytes = static_cast<std::size_t>(descr.back() - '0');
    std::string elements;
    for (std::size_t i = 0; i < 1680; ++i) elements.append(element_bytes, i % 5 == 0 ? '\x7f' : '\0');
    write("in.npy", npy_file(descr, shape, elements));
    std::vector<std::string> encode = {"run-length", "encode", folder_ / "in.npy", "-o", folder_ / "a.rle"};
    if (!options.empty()) encode.push_back(options);
    const Ended encoded = run(encode);
    ASSERT_EQ(encoded.exit_code, 0) << encoded.errors;
    const Ended decoded = run({"run-length", "decode", folder_ / "a.rle", "-o", folder_ / "back.npy"});
    ASSERT_EQ(decoded.exit_code, 0) << decoded.errors;
    EXPECT_EQ(read("back.npy").substr(read("back.npy").find('\n')), "\n" + elements);
    EXPECT_NE(read("back.npy").find("'" + descr + "'"), std::string::npos);
    EXPECT_NE(read("back.npy").find("(" + shape + ", )"), std::string::npos);
  };
  for (const char* const descr : {"|u1", "<u2", "<u4", "<u8", "<i4", "<i8", "<f2", "<f4", "<f8"})
    expect_same(descr, "5, 7, 48");  // a batch, or an image of many channels
  expect_same("|u1", "1680");
  expect_same("|u1", "40, 42", "--columns");
  expect_same("|u1", "5, 7, 48", "--columns");
  expect_same("|u1", "20, 28, 3", "--columns");
  expect_same("<f4", "2, 3, 4, 70");
  const auto expect_refused = [&](const std::vector<std::string>& arguments, const std::string& part) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.exit_code, 1);
    EXPECT_NE(ended.errors.find(part), std::string::npos) << ended.errors;
  };
  expect_refused({"run-length", "decode", folder_ / "a.rle", "-o", folder_ / "back.png"}, "into a .npy file");
  write("row.npy", npy_file("|u1", "3,", "abc"));
  expect_refused({"run-length", "encode", folder_ / "row.npy", "-o", folder_ / "b.rle", "--columns"},
                 "row.npy holds an array of 1 axes; --columns takes 2 to 8");
  write("number.npy", npy_file("|u1", "", "a"));
  expect_refused({"run-length", "encode", folder_ / "number.npy", "-o", folder_ / "b.rle"}, "of 0 axes");
}

TEST_F(RunLengthJobs, StoreWhatDoesNotCompressWithALittleMore) {
  std::string bytes(100000, ' ');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 37 + i / 251);
  write("file", bytes);
  ASSERT_EQ(run({"run-length", "encode", "--raw", folder_ / "file", "-o", folder_ / "file.rle"}).exit_code,
            0);
  EXPECT_EQ(read("file.rle").size(), bytes.size() + 128);
  const Ended info = run({"run-length", "info", folder_ / "file.rle"});
  EXPECT_EQ(Json(info.output).text("stored_as"), "the array itself");
  const Ended decoded = run({"run-length", "decode", "--raw", folder_ / "file.rle", "-o", folder_ / "back"});
  ASSERT_EQ(decoded.exit_code, 0) << decoded.errors;
  EXPECT_EQ(decoded.output.find("device"), std::string::npos) << "no device has had anything to do";
  EXPECT_TRUE(read("back") == bytes);
}

TEST_F(RunLengthJobs, RefuseAContainerThatIsCutOffOrSomethingElse) {
  write("file", std::string(5000, 'x'));
  ASSERT_EQ(run({"run-length", "encode", "--raw", folder_ / "file", "-o", folder_ / "file.rle"}).exit_code,
            0);
  const std::string container = read("file.rle");
  write("short.rle", container.substr(0, container.size() - 1));
  const Ended cut_off = run({"run-length", "decode", "--raw", folder_ / "short.rle", "-o", folder_ / "back"});
  EXPECT_EQ(cut_off.exit_code, 1);
  EXPECT_NE(cut_off.errors.find("the file was cut off"), std::string::npos) << cut_off.errors;
  const Ended other = run({"run-length", "info", folder_ / "file"});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_NE(other.errors.find("does not begin with the magic bytes"), std::string::npos) << other.errors;
  EXPECT_EQ(run({"run-length"}).exit_code, 2);
  EXPECT_EQ(run({"run-length", "encode", folder_ / "file"}).exit_code, 2);
}

/// Mask number `mask` of a batch: a disk that wanders.
std::vector<std::uint8_t> disk_masks(std::int64_t masks, std::int64_t height, std::int64_t width) {
  std::vector<std::uint8_t> pixels;
  for (std::int64_t mask = 0; mask < masks; ++mask) {
    const std::int64_t cy = mask * 7 % height;
    const std::int64_t cx = mask * 13 % width;
    const std::int64_t radius = mask % 30;
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x) {
        pixels.push_back((y - cy) * (y - cy) + (x - cx) * (x - cx) < radius * radius ? 1 : 0);
      }
    }
  }
  return pixels;
}

/// The plain loop over one mask.
void expect_area_and_box(const std::uint8_t* mask, std::int64_t height, std::int64_t width, std::int64_t area,
                         const CocoBox& box) {
  std::int64_t ones = 0;
  CocoBox found{width, height, -1, -1};  // right and bottom instead of the sizes
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      if (mask[y * width + x] == 0) continue;
      ++ones;
      found = {std::min(found.x, x), std::min(found.y, y), std::max(found.width, x),
               std::max(found.height, y)};
    }
  }
  EXPECT_EQ(area, ones);
  EXPECT_EQ(box, ones == 0
                     ? CocoBox{}
                     : (CocoBox{found.x, found.y, found.width - found.x + 1, found.height - found.y + 1}));
}

TEST_F(RunLengthJobs, ThousandsOfCocoMasksInOneRequest) {
  const std::int64_t masks = 3000;
  const std::int64_t height = 48;
  const std::int64_t width = 64;
  const std::vector<std::uint8_t> pixels = disk_masks(masks, height, width);
  const Client client = connect();
  const absl::StatusOr<Session> session = client.create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  const auto batch = session->upload(ArrayView(pixels, {masks, height, width}));
  ASSERT_TRUE(batch.ok()) << batch.status();
  absl::StatusOr<Result> encoded = session->run(encode_coco_masks(*batch));
  ASSERT_TRUE(encoded.ok()) << encoded.status();
  const auto array_of = [&](const char* name) {
    absl::StatusOr<Array> array = session->download(*encoded->buffer(name));
    EXPECT_TRUE(array.ok()) << array.status();
    return *std::move(array);
  };
  const auto texts =
      coco_strings(array_of("symbols").view(), array_of("lengths").view(), array_of("first_runs").view());
  ASSERT_TRUE(texts.ok()) << texts.status();
  ASSERT_EQ(texts->size(), static_cast<std::size_t>(masks));
  for (std::int64_t mask = 0; mask < masks; ++mask) {
    const auto counts = coco_counts((*texts)[static_cast<std::size_t>(mask)], height, width);
    ASSERT_TRUE(counts.ok()) << counts.status();
    expect_area_and_box(pixels.data() + mask * height * width, height, width, coco_area(*counts),
                        coco_box(*counts, height));
  }

  const auto runs = coco_runs(*texts, height, width);
  ASSERT_TRUE(runs.ok()) << runs.status();
  const auto symbols = session->upload(ArrayView(runs->symbols));
  const auto lengths = session->upload(ArrayView(runs->lengths));
  ASSERT_TRUE(symbols.ok() && lengths.ok());
  absl::StatusOr<Result> decoded = session->run(decode_coco_masks(*symbols, *lengths, masks, height, width));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const auto back = session->download<std::uint8_t>(*decoded->buffer("array"));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_TRUE(*back == pixels);
}

}  // namespace
}  // namespace cumulus::testing
