#pragma once

#include <absl/status/statusor.h>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cumulus::bench {

/// What programs that measure transfers are asked for.
struct TransferArguments {
  std::size_t mebibytes = 256;
  int rounds = 9;
  std::string json;
  std::string command;  // the command line

  std::size_t bytes() const { return mebibytes << 20; }
};

/// Reads the command line, of `app`'s options and those of `arguments`. The program's exit status: what
/// `measure` answers, and 1, with the reason on standard error, where it throws.
int run_program(CLI::App& app, int argc, char** argv, TransferArguments& arguments,
                const std::function<int()>& measure);

template <class T>
T value_or_throw(absl::StatusOr<T> result, const std::string& what) {
  if (!result.ok()) throw std::runtime_error(what + ": " + result.status().ToString());
  return *std::move(result);
}

/// The same at each run.
std::vector<std::uint8_t> random_bytes(std::size_t count);

/// One of what takes turns, and what its rounds took.
struct Subject {
  std::string name;
  std::function<void()> run;
  std::function<void()> prepare = [] {};  // before each run, and not counted
  std::vector<double> seconds = {};
  std::vector<double> cpu_seconds = {};  // of all threads of this process
  std::vector<double> page_faults = {};  // likewise; of those that need no disk

  double median_seconds() const;
  double median_cpu_seconds() const;
  double median_page_faults() const;
  double gigabytes_per_second(std::size_t bytes) const;
};

/// The median, over the rounds, of one subject's rate as a part of another's in the same round.
double ratio(const Subject& subject, const Subject& other);

/// Lets each run once a round. One round more, the first, warms up.
void take_turns(std::vector<Subject>& subjects, int rounds);

/// Prints whether each of them is what was sent. The program's exit status: 0 where it is so, else 1.
int came_back(std::initializer_list<std::span<const std::byte>> received, std::span<const std::uint8_t> sent);

/// Of a JSON object: "name": value.
std::string json_field(const std::string& name, double value);
std::string json_field(const std::string& name, const std::string& value);

/// A file for bench/results: commit, command, bytes, `fact`, which is a field, and a row for each of `rows`,
/// which are fields separated by commas. Nothing where no file is asked for. Throws std::runtime_error.
void write_rows(const TransferArguments& arguments, const std::string& fact,
                const std::vector<std::string>& rows);

}  // namespace cumulus::bench
