#include "bench/service/turns.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <random>

#include "bench/harness/commit.h"
#include "proto/process.h"

namespace cumulus::bench {
namespace {

using Clock = std::chrono::steady_clock;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double process_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double process_page_faults() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_minflt);
}

}  // namespace

int run_program(CLI::App& app, int argc, char** argv, TransferArguments& arguments,
                const std::function<int()>& measure) {
  app.add_option("--size", arguments.mebibytes, "MiB a transfer")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--rounds", arguments.rounds, "Rounds that count")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--json", arguments.json, "Write the rows there too")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);
  prepare_process();  // as daemon and command line do
  arguments.command = app.get_name();
  for (int i = 1; i < argc; ++i) arguments.command += std::string(" ") + argv[i];
  try {
    return measure();
  } catch (const std::exception& error) {
    std::cerr << app.get_name() << ": " << error.what() << "\n";
    return 1;
  }
}

std::vector<std::uint8_t> random_bytes(std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  std::mt19937_64 random(1);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::uint8_t>(random()); });
  return bytes;
}

double Subject::median_seconds() const { return median(seconds); }
double Subject::median_cpu_seconds() const { return median(cpu_seconds); }
double Subject::median_page_faults() const { return median(page_faults); }
double Subject::gigabytes_per_second(std::size_t bytes) const {
  return static_cast<double>(bytes) / 1e9 / median_seconds();
}

double ratio(const Subject& subject, const Subject& other) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < subject.seconds.size(); ++i)
    ratios.push_back(other.seconds[i] / subject.seconds[i]);
  return median(ratios);
}

void take_turns(std::vector<Subject>& subjects, int rounds) {
  for (int round = -1; round < rounds; ++round) {  // the first is not counted
    for (Subject& subject : subjects) {
      subject.prepare();
      const Clock::time_point start = Clock::now();
      const double cpu_start = process_cpu_seconds();
      const double faults_start = process_page_faults();
      subject.run();
      if (round < 0) continue;
      subject.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
      subject.cpu_seconds.push_back(process_cpu_seconds() - cpu_start);
      subject.page_faults.push_back(process_page_faults() - faults_start);
    }
  }
}

int came_back(std::initializer_list<std::span<const std::byte>> received,
              std::span<const std::uint8_t> sent) {
  const std::span<const std::byte> wanted = std::as_bytes(sent);
  const bool same = std::all_of(received.begin(), received.end(), [&](std::span<const std::byte> bytes) {
    return std::equal(bytes.begin(), bytes.end(), wanted.begin(), wanted.end());
  });
  std::printf("what came back is %s what was sent\n", same ? "exactly" : "NOT");
  return same ? 0 : 1;
}

std::string json_field(const std::string& name, double value) {
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), "%.6g", value);
  return "\"" + name + "\": " + digits.data();
}

std::string json_field(const std::string& name, const std::string& value) {
  return "\"" + name + "\": \"" + value + "\"";
}

void write_rows(const TransferArguments& arguments, const std::string& fact,
                const std::vector<std::string>& rows) {
  if (arguments.json.empty()) return;
  std::ofstream out(arguments.json);
  out << "{\n  " << json_field("commit", kCommit) << ",\n  " << json_field("command", arguments.command)
      << ",\n  " << fact << ",\n  \"bytes\": " << arguments.bytes() << ",\n  \"rows\": [\n";
  for (const std::string& row : rows) out << "    {" << row << (&row != &rows.back() ? "},\n" : "}\n");
  out << "  ]\n}\n";
  if (!out.flush()) throw std::runtime_error("--json: cannot write " + arguments.json);
}

}  // namespace cumulus::bench
