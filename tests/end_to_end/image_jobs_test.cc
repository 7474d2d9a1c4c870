// Whole jobs on a real HDR map: the real command line against the real daemon.
#include "tests/end_to_end/image_jobs.h"

#include <OpenImageIO/imageio.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "cumulus/sampling.h"
#include "tests/end_to_end/json.h"

namespace cumulus::testing {
namespace {

namespace fs = std::filesystem;

/// A record of draw-samples' .npy file, of a lat-long map.
struct SampleRecord {
  float u, v, direction[3], pdf;
};

std::vector<SampleRecord> read_samples(const std::string& path) {
  const Npy npy = read_npy(path);
  EXPECT_NE(npy.header.find("[('u', '<f4'), ('v', '<f4'), ('direction', '<f4', (3,)), ('pdf', '<f4')]"),
            std::string::npos)
      << npy.header;
  std::vector<SampleRecord> samples(npy.data.size() / sizeof(SampleRecord));
  std::memcpy(samples.data(), npy.data.data(), npy.data.size());
  EXPECT_NE(npy.header.find("'shape': (" + std::to_string(samples.size()) + ", )"), std::string::npos)
      << npy.header;
  return samples;
}

sampling::TableView view_of(const std::string& table) {
  sampling::TableView view;
  view.data = reinterpret_cast<const unsigned char*>(table.data());
  EXPECT_EQ(sampling::parse_header(table.data(), table.size(), table.size(), view.header),
            sampling::TableError::kNone);
  return view;
}

void expect_same(const SampleRecord& record, const sampling::Sample& sample, std::size_t index) {
  EXPECT_EQ(record.u, sample.u) << index;
  EXPECT_EQ(record.v, sample.v) << index;
  EXPECT_EQ(record.pdf, sample.pdf) << index;
  for (int axis = 0; axis < 3; ++axis) EXPECT_EQ(record.direction[axis], sample.direction[axis]) << index;
}

TEST_F(ImageJobs, ASavedTableSampledHereGivesTheServersSamples) {
  succeed({"sampling-table", kMap, "-o", folder_ / "map.cst"});
  succeed({"draw-samples", folder_ / "map.cst", "-n", "5000", "-o", folder_ / "of_table.npy"});
  succeed({"draw-samples", kMap, "-n", "5000", "-o", folder_ / "of_map.npy"});
  EXPECT_TRUE(read_file(folder_ / "of_table.npy") == read_file(folder_ / "of_map.npy"));

  const std::string table = read_file(folder_ / "map.cst");
  const sampling::TableView view = view_of(table);
  EXPECT_EQ(view.header.width, 1024U);
  EXPECT_EQ(view.header.height, 512U);
  const std::vector<SampleRecord> samples = read_samples(folder_ / "of_table.npy");
  ASSERT_EQ(samples.size(), 5000U);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto point = sampling::sobol_point(static_cast<std::uint32_t>(i));
    expect_same(samples[i], sampling::sample(view, point.x, point.y), i);
  }
}

TEST_F(ImageJobs, BatchesContinueOneSequence) {
  constexpr std::size_t kCount = (1U << 20) + 100;  // more than one call draws
  succeed({"sampling-table", kMap, "-o", folder_ / "map.cst"});
  succeed({"draw-samples", folder_ / "map.cst", "-n", std::to_string(kCount), "--sequence", "hammersley",
           "--seed", "7", "--first-index", "10", "-o", folder_ / "samples.npy"});
  const std::string table = read_file(folder_ / "map.cst");
  const sampling::TableView view = view_of(table);
  const std::vector<SampleRecord> samples = read_samples(folder_ / "samples.npy");
  ASSERT_EQ(samples.size(), kCount);
  for (const std::size_t i :
       {std::size_t{0}, std::size_t{1}, (std::size_t{1} << 20) - 1, std::size_t{1} << 20, kCount - 1}) {
    const auto point =
        sampling::shifted_point(sampling::hammersley_point(static_cast<std::uint32_t>(10 + i), 10 + kCount),
                                sampling::digital_shift(7));
    expect_same(samples[i], sampling::sample(view, point.x, point.y), i);
  }
}

TEST_F(ImageJobs, TheMapsNegativeChannelsAreClampedUnlessTheyAreToBeRefused) {
  const Ended clamped = run({"--json", "sampling-table", kMap, "-o", folder_ / "map.cst"});
  ASSERT_EQ(clamped.exit_code, 0) << clamped.errors;
  EXPECT_EQ(Json(clamped.output).text("invalid_weights"), "clamp");
  fail({"sampling-table", kMap, "-o", folder_ / "other.cst", "--invalid-weights", "refuse"}, "is -");
  fail({"draw-samples", kMap, "-n", "10", "-o", folder_ / "s.npy", "--invalid-weights", "refuse"}, "is -");
  EXPECT_FALSE(fs::exists(folder_ / "other.cst"));
}

TEST_F(ImageJobs, AMapOfHalfFloatsTravelsAsSuchAndGivesTheTableOfTheSameFloats) {
  Picture map = read_picture(kMap);
  map.stored = OIIO::TypeDesc::HALF;
  write_picture(folder_ / "halves.exr", map);
  map = read_picture(folder_ / "halves.exr");  // rounded
  ASSERT_EQ(map.stored, OIIO::TypeDesc(OIIO::TypeDesc::HALF));
  map.stored = OIIO::TypeDesc::FLOAT;
  write_picture(folder_ / "floats.exr", map);
  const auto build = [&](const std::string& input, const std::string& output) {
    const Ended built = run({"--json", "sampling-table", input, "-o", output});
    EXPECT_EQ(built.exit_code, 0) << built.errors;
    return Json(built.output).text("element_type");
  };
  for (const std::string& name : {std::string("halves"), std::string("floats")}) {
    EXPECT_EQ(build(folder_ / (name + ".exr"), folder_ / (name + ".cst")),
              name == "halves" ? "float16" : "float32");
    succeed({"draw-samples", folder_ / (name + ".exr"), "-n", "100", "--preview", folder_ / (name + ".png")});
  }
  EXPECT_TRUE(read_file(folder_ / "halves.cst") == read_file(folder_ / "floats.cst"));
  EXPECT_TRUE(read_file(folder_ / "halves.png") == read_file(folder_ / "floats.png"));
}

TEST_F(ImageJobs, APlanesSamplesHaveNoDirection) {
  succeed({"draw-samples", kMap, "-n", "10", "--projection", "plane", "--sequence", "random", "-o",
           folder_ / "s.npy"});
  const Npy npy = read_npy(folder_ / "s.npy");
  EXPECT_NE(npy.header.find("[('u', '<f4'), ('v', '<f4'), ('pdf', '<f4')]"), std::string::npos) << npy.header;
  EXPECT_EQ(npy.data.size(), 10U * 3U * sizeof(float));
}

TEST_F(ImageJobs, RunsShareOneSetOfPoints) {
  const std::vector<std::string> draw = {"draw-samples", kMap, "--sequence", "hammersley", "--total", "64"};
  const auto drawn = [&](const std::string& first, const std::string& count) {
    std::vector<std::string> arguments = draw;
    arguments.insert(arguments.end(),
                     {"--first-index", first, "-n", count, "-o", folder_ / (first + ".npy")});
    succeed(arguments);
    return read_npy(folder_ / (first + ".npy")).data;
  };
  EXPECT_EQ(drawn("0", "64"), drawn("0", "40") + drawn("40", "24"));
}

TEST_F(ImageJobs, DrawsMoreThanOneBatchInTheOrderOfTheSequence) {
  constexpr std::size_t kCount = (std::size_t{1} << 20) + 5;
  succeed({"sampling-table", kMap, "-o", folder_ / "map.cst"});
  succeed({"draw-samples", folder_ / "map.cst", "-n", std::to_string(kCount), "--first-index", "3", "-o",
           folder_ / "samples.npy"});
  const std::string table = read_file(folder_ / "map.cst");
  const sampling::TableView view = view_of(table);
  const std::vector<SampleRecord> samples = read_samples(folder_ / "samples.npy");
  ASSERT_EQ(samples.size(), kCount);
  for (const std::size_t i : {std::size_t{0}, kCount - 6, kCount - 5, kCount - 1}) {
    const auto point = sampling::sobol_point(static_cast<std::uint32_t>(i + 3));
    expect_same(samples[i], sampling::sample(view, point.x, point.y), i);
  }
}

TEST_F(ImageJobs, EvaluatesDensitiesAtPositionsAndDirections) {
  succeed({"sampling-table", kMap, "-o", folder_ / "map.cst"});
  const std::string table = read_file(folder_ / "map.cst");
  const sampling::TableView view = view_of(table);
  const auto write_points = [&](const std::string& descr, std::size_t dimensions, const auto& values) {
    std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" +
                         std::to_string(values.size() / dimensions) + ", " + std::to_string(dimensions) +
                         "), }";
    header.resize(118 - 1, ' ');
    std::ofstream file(folder_ / "points.npy", std::ios::binary);
    file << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(118) << '\0' << header << '\n';
    file.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(values[0])));
  };
  const auto evaluated = [&](const std::string& input) {
    succeed({"evaluate-density", input, folder_ / "points.npy", "-o", folder_ / "pdf.npy"});
    const std::string data = read_npy(folder_ / "pdf.npy").data;
    std::vector<float> pdf(data.size() / sizeof(float));
    std::memcpy(pdf.data(), data.data(), data.size());
    return pdf;
  };
  write_points("<f8", 2, std::vector<double>{0.25, 0.5, 0.75, 0.125});
  EXPECT_EQ(evaluated(kMap),
            (std::vector<float>{sampling::pdf(view, 0.25F, 0.5F), sampling::pdf(view, 0.75F, 0.125F)}));
  const std::vector<float> up_right = {3.0F, 2.0F, -1.0F};
  write_points("<f4", 3, up_right);
  EXPECT_EQ(evaluated(folder_ / "map.cst"), std::vector<float>{sampling::pdf(view, up_right.data())});
  fail({"evaluate-density", kMap, kMap, "-o", folder_ / "pdf.npy"}, "does not begin as a .npy file");
  // What draw-samples writes, which has a density at the end of each record.
  for (const std::string projection : {"lat-long", "plane"}) {
    const std::size_t floats = projection == "plane" ? 3 : 6;
    succeed({"sampling-table", kMap, "--projection", projection, "-o", folder_ / "drawn.cst"});
    succeed({"draw-samples", folder_ / "drawn.cst", "-n", "5", "-o", folder_ / "points.npy"});
    const std::string records = read_npy(folder_ / "points.npy").data;
    const std::vector<float> pdf = evaluated(folder_ / "drawn.cst");
    ASSERT_EQ(pdf.size(), 5U);
    for (std::size_t i = 0; i < pdf.size(); ++i) {
      float drawn = 0;
      std::memcpy(&drawn, records.data() + ((i + 1) * floats - 1) * sizeof(float), sizeof(float));
      EXPECT_EQ(pdf[i], drawn) << projection << " " << i;
    }
  }
}

TEST_F(ImageJobs, ThePreviewShowsTheMapWithDotsWhereTheSamplesAre) {
  succeed({"draw-samples", kMap, "-n", "300", "-o", folder_ / "samples.npy", "--preview",
           folder_ / "preview.png"});
  const Picture preview = read_picture(folder_ / "preview.png");
  ASSERT_EQ(preview.width, 1024);
  ASSERT_EQ(preview.height, 512);
  ASSERT_EQ(preview.channels, 3);
  for (const SampleRecord& sample : read_samples(folder_ / "samples.npy")) {
    const auto x = static_cast<int>(sample.u * 1024);
    const auto y = static_cast<int>(sample.v * 512);
    const float* pixel = preview.pixels.data() + (y * 1024 + x) * 3;
    EXPECT_GT(pixel[0], 0.9F) << x << ", " << y;  // orange
    EXPECT_LT(pixel[2], 0.3F) << x << ", " << y;
  }
  succeed({"sampling-table", kMap, "-o", folder_ / "map.cst"});
  succeed(
      {"draw-samples", folder_ / "map.cst", "--map", kMap, "-n", "300", "--preview", folder_ / "again.png"});
  EXPECT_TRUE(read_file(folder_ / "again.png") == read_file(folder_ / "preview.png"));
}

TEST_F(ImageJobs, SumsAreThoseOfTheMap) {
  const Picture map = read_picture(kMap);
  const auto channels = static_cast<std::size_t>(map.channels);
  const auto row = static_cast<std::size_t>(map.width) * channels;
  std::vector<double> sums(map.pixels.begin(), map.pixels.end());
  double largest = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (i % row >= channels) sums[i] += sums[i - channels];
    if (i >= row) sums[i] += sums[i - row];
    if (i >= row && i % row >= channels) sums[i] -= sums[i - row - channels];
    largest = std::max(largest, sums[i]);
  }
  succeed({"summed-area-table", kMap, "-o", folder_ / "sums.npy"});
  const Npy npy = read_npy(folder_ / "sums.npy");
  EXPECT_NE(npy.header.find("'<f8'"), std::string::npos) << npy.header;
  ASSERT_EQ(npy.data.size(), sums.size() * sizeof(double));
  double worst = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    double sum = 0;
    std::memcpy(&sum, npy.data.data() + i * sizeof(double), sizeof(double));
    worst = std::max(worst, std::abs(sum - sums[i]));
  }
  EXPECT_LT(worst, 1e-9 * largest);  // both are double sums of half a million floats, in different orders

  succeed({"summed-area-table", kMap, "-o", folder_ / "sums.tif"});
  EXPECT_EQ(read_picture(folder_ / "sums.tif").stored, OIIO::TypeDesc(OIIO::TypeDesc::DOUBLE));
  const Ended exr = run({"--json", "summed-area-table", kMap, "-o", folder_ / "sums.exr"});
  ASSERT_EQ(exr.exit_code, 0) << exr.errors;
  EXPECT_EQ(Json(exr.output).text("stored_as"), "float32");
  const Picture narrowed = read_picture(folder_ / "sums.exr");
  EXPECT_EQ(narrowed.stored, OIIO::TypeDesc(OIIO::TypeDesc::FLOAT));
  EXPECT_NEAR(narrowed.pixels.back(), sums.back(), 1e-6 * sums.back());
}

TEST_F(ImageJobs, BoxMeansAreThoseOfTheMap) {
  constexpr int kRadius = 5;
  succeed({"box-filter", kMap, "-o", folder_ / "box.exr", "--radius", std::to_string(kRadius),
           "--compression", "zip"});  // the map's own, DWA, is not exact
  const Picture map = read_picture(kMap);
  const Picture means = read_picture(folder_ / "box.exr");
  ASSERT_EQ(means.pixels.size(), map.pixels.size());
  for (int y = 0; y < map.height; y += 7) {
    for (int x = 0; x < map.width; x += 13) {
      for (int c = 0; c < map.channels; ++c) {
        const double expected = box_mean(map, y, x, c, kRadius);
        const float found = means.pixels[static_cast<std::size_t>((y * map.width + x) * map.channels + c)];
        ASSERT_NEAR(found, expected, 1e-5 * expected + 1e-6) << y << ", " << x << ", " << c;
      }
    }
  }
}

TEST_F(ImageJobs, EightBitPicturesStayEightBit) {
  Picture picture{64, 32, 3, OIIO::TypeDesc::UINT8, std::vector<float>(64 * 32 * 3)};
  for (std::size_t i = 0; i < picture.pixels.size(); ++i)
    picture.pixels[i] = static_cast<float>(i % 251) / 255.0F;
  write_picture(folder_ / "in.png", picture);
  succeed({"box-filter", folder_ / "in.png", "-o", folder_ / "out.png", "--radius", "0"});
  EXPECT_EQ(read_picture(folder_ / "out.png").pixels, read_picture(folder_ / "in.png").pixels);
  succeed({"summed-area-table", folder_ / "in.png", "-o", folder_ / "sums.npy"});
  EXPECT_NE(read_npy(folder_ / "sums.npy").header.find("'<u4'"), std::string::npos);
}

TEST_F(ImageJobs, SixteenBitPicturesStaySixteenBit) {
  Picture grey{16, 16, 1, OIIO::TypeDesc::UINT16, std::vector<float>(16 * 16, 1000.0F / 65535.0F)};
  write_picture(folder_ / "in.png", grey);
  succeed({"box-filter", folder_ / "in.png", "-o", folder_ / "box.png", "--radius", "2"});
  succeed({"blur", folder_ / "in.png", "-o", folder_ / "blur.png", "--sigma", "2"});
  for (const char* name : {"box.png", "blur.png"}) {
    const Picture out = read_picture(folder_ / name);
    EXPECT_EQ(out.stored, OIIO::TypeDesc::UINT16) << name;
    for (const float pixel : out.pixels)
      ASSERT_NEAR(pixel * 65535.0F, 1000.0F, 1.0F) << name;  // of 8 bits: 1028
  }
}

TEST_F(ImageJobs, AFullDiskIsSaidOfEveryFormat) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  Picture picture{64, 32, 3, OIIO::TypeDesc::UINT8, std::vector<float>(64 * 32 * 3, 0.5F)};
  write_picture(folder_ / "in.png", picture);
  for (const char* name : {"x.png", "x.jpg", "x.exr", "x.tif", "x.hdr"}) {
    fs::create_symlink("/dev/full", folder_ / name);
    fail({"box-filter", folder_ / "in.png", "-o", folder_ / name, "--radius", "1"},
         "No space left on device");
  }
}

TEST_F(ImageJobs, TheReportIsOneJsonObject) {
  const std::vector<std::vector<std::string>> jobs = {
      {"sampling-table", kMap, "-o", folder_ / "a \"quoted\" name.cst"},
      {"draw-samples", kMap, "-n", "16", "-o", folder_ / "s.npy", "--preview", folder_ / "p.png"},
      {"summed-area-table", kMap, "-o", folder_ / "s.exr"},
      {"box-filter", kMap, "-o", folder_ / "b.exr", "--radius", "2"}};
  for (std::vector<std::string> job : jobs) {
    job.insert(job.begin(), "--json");
    const Ended ended = run(job);
    ASSERT_EQ(ended.exit_code, 0) << ended.errors;
    const Json report(ended.output);
    EXPECT_EQ(report.text("command"), job[1]);
    EXPECT_EQ(report.text("device.backend"), "cpu");
    EXPECT_GT(report.number("seconds.total"), 0);
    EXPECT_GT(report.number("server_seconds.compute"), 0);
  }
  EXPECT_TRUE(fs::exists(folder_ / "a \"quoted\" name.cst"));
}

TEST_F(ImageJobs, SeveralCommandsShareOneServer) {
  std::vector<std::thread> clients;
  std::vector<Ended> ended(4);
  for (std::size_t i = 0; i < ended.size(); ++i) {
    clients.emplace_back([&, i] {
      ended[i] = run({"draw-samples", kMap, "-n", "20000", "-o", folder_ / (std::to_string(i) + ".npy")});
    });
  }
  for (std::thread& client : clients) client.join();
  for (std::size_t i = 0; i < ended.size(); ++i) {
    EXPECT_EQ(ended[i].exit_code, 0) << ended[i].errors;
    EXPECT_TRUE(read_file(folder_ / (std::to_string(i) + ".npy")) == read_file(folder_ / "0.npy"));
  }
}

TEST_F(ImageJobs, RefuseADamagedTable) {
  succeed({"sampling-table", kMap, "-o", folder_ / "map.cst"});
  std::string table = read_file(folder_ / "map.cst");
  table[table.size() / 2] = static_cast<char>(table[table.size() / 2] ^ 1);
  std::ofstream(folder_ / "flipped.cst", std::ios::binary) << table;
  fail({"draw-samples", folder_ / "flipped.cst", "-n", "4", "-o", folder_ / "s.npy"},
       "do not match the crc32c");
  std::ofstream(folder_ / "short.cst", std::ios::binary) << table.substr(0, table.size() - 1);
  fail({"draw-samples", folder_ / "short.cst", "-n", "4", "-o", folder_ / "s.npy"}, "cut off or padded");
  std::ofstream(folder_ / "empty.cst", std::ios::binary) << "";
  fail({"draw-samples", folder_ / "empty.cst", "-n", "4", "-o", folder_ / "s.npy"},
       "shorter than its header");
  EXPECT_FALSE(fs::exists(folder_ / "s.npy"));
}

TEST_F(ImageJobs, PassOnWhatTheServerRefuses) {
  Picture black{8, 4, 3, OIIO::TypeDesc::FLOAT, std::vector<float>(8 * 4 * 3)};
  write_picture(folder_ / "black.exr", black);
  fail({"sampling-table", folder_ / "black.exr", "-o", folder_ / "x.cst"}, "zero");
  black.pixels[7] = std::nanf("");
  write_picture(folder_ / "nan.exr", black);
  fail({"sampling-table", folder_ / "nan.exr", "-o", folder_ / "x.cst"}, "nan.exr: every weight is zero");
  fail({"box-filter", kMap, "-o", folder_ / "b.exr", "--radius", "5000"},
       "cumulus: --radius: is 5000; 0 to 1024, ");
  EXPECT_FALSE(fs::exists(folder_ / "x.cst"));
}

/// The example's last lines: "table, 64 samples: noise of the diffuse sphere 0.1, of the glossy one 0.2".
std::vector<double> noise_of(const std::string& output, const std::string& picture) {
  const std::size_t line = output.find(picture);
  EXPECT_NE(line, std::string::npos) << output;
  if (line == std::string::npos) return {0, 0};
  const std::size_t diffuse = output.find("sphere ", line);
  const std::size_t glossy = output.find("one ", line);
  return {std::stod(output.substr(diffuse + 7)), std::stod(output.substr(glossy + 4))};
}

TEST(Example, SlowLightsSpheresWithLessNoiseByTheTable) {
  Daemon daemon;
  const Ended ended = Program(CUMULUS_EXAMPLE_LIGHT_SPHERES, {daemon.address(), kMap}).wait();
  ASSERT_EQ(ended.exit_code, 0) << ended.errors;
  for (const std::string samples : {"16", "64", "256"}) {
    const auto table = noise_of(ended.output, "table, " + samples + " samples");
    for (const std::string other : {"uniform", "cosine"}) {
      const auto noise = noise_of(ended.output, other + ", " + samples + " samples");
      for (std::size_t sphere = 0; sphere < 2; ++sphere) {
        EXPECT_LT(table[sphere], noise[sphere]) << other << ", " << samples << '\n' << ended.output;
      }
    }
  }
  const Ended full = Program(CUMULUS_EXAMPLE_LIGHT_SPHERES, {daemon.address(), kMap, "/dev/full"}).wait();
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_EQ(full.errors, "cannot write /dev/full\n");
}

}  // namespace
}  // namespace cumulus::testing
