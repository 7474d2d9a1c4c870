// COCO masks from the command line: images to a JSON file that pycocotools takes, and back.
#include <OpenImageIO/imageio.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/cases/coco_mask_case.h"
#include "tests/end_to_end/json.h"
#include "tests/end_to_end/npy_file.h"
#include "tests/end_to_end/served_jobs.h"

namespace cumulus::testing {
namespace {

class CocoMaskJobs : public ServedJobs {
 protected:
  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  /// The file is a list; Json wants an object.
  std::string list_in_object(const std::string& name) {
    return R"({"masks": )" + read_file(folder_ / name) + "}";
  }
  /// What `info` says of a file of this text.
  Ended info_of(const std::string& text) {
    write("asked.json", text);
    return run_cumulus({"--json", "run-length", "info", folder_ / "asked.json"});
  }
  void refuse(const std::string& text, const std::string& part) {
    write("wrong.json", text);
    fail({"run-length", "info", folder_ / "wrong.json"}, part);
  }
};

void write_image(const std::string& path, int height, int width, int channels,
                 const std::vector<std::uint8_t>& samples) {
  OIIO::ImageSpec spec(width, height, channels, OIIO::TypeDesc::UINT8);
  spec.attribute("oiio:UnassociatedAlpha", 1);
  const auto output = OIIO::ImageOutput::create(path);
  ASSERT_NE(output, nullptr);
  ASSERT_TRUE(output->open(path, spec) && output->write_image(OIIO::TypeDesc::UINT8, samples.data()) &&
              output->close());
}

std::vector<std::uint8_t> read_image(const std::string& path) {
  const auto input = OIIO::ImageInput::open(path);
  EXPECT_NE(input, nullptr) << OIIO::geterror();
  if (input == nullptr) return {};
  EXPECT_EQ(input->spec().nchannels, 1);
  std::vector<std::uint8_t> samples(static_cast<std::size_t>(input->spec().image_pixels()));
  EXPECT_TRUE(input->read_image(0, 0, 0, -1, OIIO::TypeDesc::UINT8, samples.data()));
  return samples;
}

/// Of 0 and 1, white and black.
std::vector<std::uint8_t> drawn(std::vector<std::uint8_t> mask) {
  for (std::uint8_t& pixel : mask) pixel = pixel == 0 ? 0 : 255;
  return mask;
}

TEST_F(CocoMaskJobs, AreTheTextsThatPycocotoolsWrites) {
  const std::vector<GoldenMask> golden = golden_masks();
  std::vector<std::string> encode = {"run-length", "coco-encode"};
  for (const GoldenMask& mask : golden) {
    const std::string path = folder_ / (mask.name + ".png");
    write_image(path, static_cast<int>(mask.height), static_cast<int>(mask.width), 1, drawn(pixels_of(mask)));
    encode.push_back(path);
  }
  encode.insert(encode.end(), {"-o", folder_ / "masks.json"});
  succeed(encode);

  const Ended info = run_cumulus({"--json", "run-length", "info", folder_ / "masks.json"});
  ASSERT_EQ(info.exit_code, 0) << info.errors;
  const Json written(list_in_object("masks.json"));
  const Json told(info.output);
  for (std::size_t i = 0; i < golden.size(); ++i) {
    SCOPED_TRACE(golden[i].name);
    const std::string mask = "masks." + std::to_string(i);
    EXPECT_EQ(written.text(mask + ".counts"), golden[i].text);
    EXPECT_EQ(written.text(mask + ".file_name"), golden[i].name + ".png");
    EXPECT_EQ(written.number(mask + ".size.0"), static_cast<double>(golden[i].height));
    EXPECT_EQ(written.number(mask + ".size.1"), static_cast<double>(golden[i].width));
    EXPECT_EQ(told.number(mask + ".area"), static_cast<double>(golden[i].area));
    EXPECT_EQ(told.number(mask + ".bbox.0"), static_cast<double>(golden[i].box.x));
    EXPECT_EQ(told.number(mask + ".bbox.1"), static_cast<double>(golden[i].box.y));
    EXPECT_EQ(told.number(mask + ".bbox.2"), static_cast<double>(golden[i].box.width));
    EXPECT_EQ(told.number(mask + ".bbox.3"), static_cast<double>(golden[i].box.height));
  }

  succeed({"run-length", "coco-decode", folder_ / "masks.json", "-o", folder_ / "back"});
  for (const GoldenMask& mask : golden) {
    SCOPED_TRACE(mask.name);
    EXPECT_TRUE(read_image(folder_ / "back/" + mask.name + ".png") == drawn(pixels_of(mask)));
  }
  fail({"run-length", "coco-decode", folder_ / "masks.json", "-o", folder_ / "back"},
       "empty.png exists and is not replaced; name another folder");
  fail({"run-length", "coco-decode", folder_ / "masks.json", "-o", folder_ / "masks.json"}, "name another");
}

/// More of them than go to the server together, and sizes that change in between.
TEST_F(CocoMaskJobs, StayInTheirOrderOverManyCalls) {
  constexpr int kRows = 1024;
  std::vector<std::string> encode = {"run-length", "coco-encode"};
  for (int i = 0; i < 12; ++i) {
    const int width = i == 7 ? 500 : 1000;
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(width * kRows));
    std::fill_n(pixels.begin(), width * (i + 1), std::uint8_t{255});  // i + 1 rows from above
    const std::string path = folder_ / (std::to_string(i) + ".png");
    write_image(path, kRows, width, 1, pixels);
    encode.push_back(path);
  }
  encode.insert(encode.end(), {"-o", folder_ / "masks.json"});
  succeed(encode);
  const Ended info = run_cumulus({"--json", "run-length", "info", folder_ / "masks.json"});
  ASSERT_EQ(info.exit_code, 0) << info.errors;
  const Json told(info.output);
  for (int i = 0; i < 12; ++i) {
    const std::string mask = "masks." + std::to_string(i);
    EXPECT_EQ(told.text(mask + ".file_name"), std::to_string(i) + ".png");
    EXPECT_EQ(told.number(mask + ".bbox.3"), i + 1) << mask;
    EXPECT_EQ(told.number(mask + ".bbox.2"), i == 7 ? 500 : 1000) << mask;
  }
}

TEST_F(CocoMaskJobs, AreOfColoursOrOfAlphaAboveAThreshold) {
  // Red, green of 100, nothing; their alpha.
  write_image(folder_ / "rgba.png", 1, 3, 4, {255, 0, 0, 255, 0, 100, 0, 255, 0, 0, 0, 128});
  const auto counts_with = [&](std::vector<std::string> options) {
    options.insert(options.begin(),
                   {"run-length", "coco-encode", folder_ / "rgba.png", "-o", folder_ / "m.json"});
    succeed(options);
    return Json(list_in_object("m.json")).text("masks.0.counts");
  };
  EXPECT_EQ(counts_with({}), "021");
  EXPECT_EQ(counts_with({"--above", "100"}), "012");
  EXPECT_EQ(counts_with({"--alpha"}), "03");
  EXPECT_EQ(counts_with({"--alpha", "--above", "128"}), "021");
  EXPECT_EQ(counts_with({"--above", "255"}), "3");
  write_image(folder_ / "grey.png", 1, 1, 1, {7});
  fail({"run-length", "coco-encode", folder_ / "grey.png", "--alpha", "-o", folder_ / "m.json"},
       "grey.png has no alpha channel");
  EXPECT_EQ(run({"run-length", "coco-encode", folder_ / "grey.png"}).exit_code, 2);
  EXPECT_EQ(run({"run-length", "coco-encode", "-o", folder_ / "m.json"}).exit_code, 2);
  EXPECT_EQ(run({"run-length", "coco-decode", folder_ / "m.json"}).exit_code, 2);
}

TEST_F(CocoMaskJobs, AreOfArraysToo) {
  write("truth.npy", npy_file("|b1", "2, 3", std::string("\0\1\1\0\0\1", 6)));
  write("numbers.npy", npy_file("|u1", "2, 3", std::string("\2\3\4\0\2\3", 6)));
  succeed({"run-length", "coco-encode", folder_ / "truth.npy", "-o", folder_ / "m.json"});
  const std::string truth = Json(list_in_object("m.json")).text("masks.0.counts");
  succeed({"run-length", "coco-encode", folder_ / "numbers.npy", "--above", "2", "-o", folder_ / "m.json"});
  EXPECT_EQ(Json(list_in_object("m.json")).text("masks.0.counts"), truth);
  succeed({"run-length", "coco-decode", folder_ / "m.json", "-o", folder_ / "drawn"});
  EXPECT_EQ(read_image(folder_ / "drawn/numbers.png"), drawn({0, 1, 1, 0, 0, 1}));
  write("wrong.npy", npy_file("|b1", "6, ", std::string(6, '\1')));
  fail({"run-length", "coco-encode", folder_ / "wrong.npy", "-o", folder_ / "m.json"},
       "a mask is [height, width]");
}

TEST_F(CocoMaskJobs, AreDrawnIntoAFolder) {
  write("m.json", R"([{"size": [2, 3], "counts": "6"}])");
  fail({"run-length", "coco-decode", folder_ / "m.json", "-o", folder_ / "m.png"},
       "a folder for a picture of each mask");
}

TEST_F(CocoMaskJobs, AreReadFromResultsAndAnnotations) {
  const std::string mask = R"({"size": [5, 7], "counts": "0S1"})";
  const std::vector<std::string> files = {
      mask, "[" + mask + "]", R"([{"image_id": 3, "score": 0.5, "segmentation": )" + mask + "}]",
      R"({"images": [], "annotations": [{"id": 1, "segmentation": )" + mask + "}]}",
      R"({"size": [5, 7], "counts": [0, 35]})"};
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const Ended info = info_of(file);
    ASSERT_EQ(info.exit_code, 0) << info.errors;
    EXPECT_EQ(Json(info.output).number("masks.0.area"), 35);
  }
  // Masks without names, or with one name, are drawn under their numbers.
  write("two.json", "[" + mask + ", " + R"({"size": [1, 2], "counts": "11", "file_name": "../x.png"}])");
  succeed({"run-length", "coco-decode", folder_ / "two.json", "-o", folder_ / "two"});
  EXPECT_EQ(read_image(folder_ / "two/000000.png"), std::vector<std::uint8_t>(35, 255));
  EXPECT_EQ(read_image(folder_ / "two/000001.png"), (std::vector<std::uint8_t>{0, 255}));
  // A name is no path.
  write("one.json", R"([{"size": [1, 2], "counts": "11", "file_name": "../x.jpg"}])");
  succeed({"run-length", "coco-decode", folder_ / "one.json", "-o", folder_ / "one"});
  EXPECT_TRUE(std::filesystem::exists(folder_ / "one/x.png"));
}

TEST_F(CocoMaskJobs, AreMadeOfTheSegmentationsOfADataSet) {
  write("data.json", R"({"info": {"year": 2026}, "images": [{"id": 900100581904, "height": 5, "width": 7}],
    "annotations": [
      {"id": 7, "image_id": 900100581904, "category_id": 3, "segmentation": [[1, 1, 5, 1, 5, 4, 1, 4]]},
      {"id": 8, "image_id": 900100581904, "segmentation": {"size": [5, 7], "counts": [0, 35]}},
      {"id": 9, "image_id": 2, "segmentation": [[1, 1, 5, 1, 5, 4]]},
      {"id": 10, "image_id": 900100581904, "segmentation": [[1, 1, 5, 1]]},
      {"id": 11, "image_id": 900100581904, "segmentation": {"size": [5, 7], "counts": "0S1"}}]})");
  const Ended ended =
      run({"--json", "run-length", "coco-encode", folder_ / "data.json", "-o", folder_ / "out.json"});
  EXPECT_EQ(ended.exit_code, 1);
  const Json told(ended.output);
  EXPECT_EQ(told.number("masks"), 3);
  EXPECT_EQ(told.number("failed"), 2);
  EXPECT_NE(ended.errors.find("annotation 2 (id 9): the file's images have none with the id 2"),
            std::string::npos)
      << ended.errors;
  EXPECT_NE(ended.errors.find("annotation 3 (id 10): a polygon is x, y of at least three corners"),
            std::string::npos)
      << ended.errors;
  const Json written(read_file(folder_ / "out.json"));
  EXPECT_EQ(written.number("info.year"), 2026);
  EXPECT_EQ(written.number("images.0.id"), 900100581904);
  EXPECT_EQ(written.number("annotations.0.id"), 7);
  EXPECT_EQ(written.number("annotations.0.category_id"), 3);
  EXPECT_EQ(written.number("annotations.0.segmentation.size.1"), 7);
  EXPECT_EQ(written.text("annotations.0.segmentation.counts"), "632000009");
  EXPECT_EQ(written.text("annotations.1.segmentation.counts"), "0S1");
  EXPECT_EQ(written.text("annotations.4.segmentation.counts"), "0S1");
  EXPECT_EQ(written.number("annotations.3.segmentation.0.3"), 1);  // as it was
}

TEST_F(CocoMaskJobs, AreDoneWithoutThoseThatCannotBeRead) {
  write_image(folder_ / "a.png", 1, 2, 1, {255, 0});
  write("b.png", "no picture");
  const Ended ended = run({"--json", "run-length", "coco-encode", folder_ / "b.png", folder_ / "a.png", "-o",
                           folder_ / "m.json"});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_NE(ended.errors.find("b.png"), std::string::npos) << ended.errors;
  EXPECT_NE(ended.errors.find("1 of 2 masks could not be encoded"), std::string::npos) << ended.errors;
  EXPECT_EQ(Json(list_in_object("m.json")).text("masks.0.file_name"), "a.png");
}

TEST_F(CocoMaskJobs, AreRefusedWithTheirPlace) {
  refuse("[1 2]", "it is no JSON");
  refuse("[{]", "it is no JSON");
  refuse(R"([{"size": [5, 7], "counts": "0S1"}, {"counts": "0S1"}])", "mask 1 has no size and counts");
  refuse("[7]", "mask 0 has no size and counts");
  refuse("{}", "the file has no size and counts");
  refuse(R"({"annotations": [{"segmentation": [[1, 2, 3, 4]]}]})",
         "annotation 0.segmentation is polygons; cumulus run-length coco-encode makes masks of them");
  refuse(R"({"annotations": {}})", "the file.annotations is no list");
  refuse(R"([{"size": [5], "counts": ""}])", "mask 0.size: [height, width] is right");
  refuse(R"([{"size": [5, -7], "counts": ""}])",
         "mask 0.size[1]: a whole number of 0 to 2147483647 is right");
  refuse(R"([{"size": [5, 0.5], "counts": ""}])", "mask 0.size[1]: a whole number");
  refuse(R"([{"size": [5, 7], "counts": 3}])", "mask 0.counts is neither a string nor a list");
  refuse(R"([{"size": [5, 7], "counts": [0, 4294967296]}])", "mask 0.counts[1]: a whole number");
  refuse(R"([{"size": [5, 7], "counts": "0S"}])",
         "mask 0: not a COCO mask: at character 1 a number is cut off");
  refuse(R"([{"size": [5, 7], "counts": "4"}])", "31 of the 35 pixels of 5 x 7 missing");
  refuse(R"([{"size": [2147483647, 2147483647], "counts": "4"}])",
         "pixels of 2147483647 x 2147483647 missing");
  fail({"run-length", "coco-decode", folder_ / "none.json", "-o", folder_ / "masks"},
       "name a file that exists");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "masks"));
}

}  // namespace
}  // namespace cumulus::testing
