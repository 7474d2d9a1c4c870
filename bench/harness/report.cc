#include "bench/harness/report.h"

#include <algorithm>
#include <fstream>
#include <iomanip>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace cumulus::bench {
namespace {

constexpr int kNameWidth = 56;

std::string json_text(std::string_view text) {
  std::ostringstream out;
  out << '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out << '\\' << c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out << "\\u" << std::hex << std::setw(4) << std::setfill('0') << static_cast<int>(c) << std::dec;
    } else {
      out << c;
    }
  }
  out << '"';
  return out.str();
}

void write_row(std::ostream& out, const Row& row) {
  out << "    {\"name\": " << json_text(row.name) << ", \"backend\": " << json_text(row.backend)
      << ", \"samples\": " << row.samples << ", \"median_us\": " << row.median_seconds * 1e6
      << ", \"fastest_us\": " << row.fastest_seconds * 1e6 << ", \"bytes\": " << row.bytes
      << ", \"gb_per_s\": " << row.bytes_per_second() / 1e9 << ", \"copy_us\": " << row.copy_seconds * 1e6
      << ", \"share_of_copy\": " << row.share_of_copy() << ", \"items_per_s\": " << row.items_per_second()
      << ", \"unit\": " << json_text(row.unit) << ", \"scratch_bytes\": " << row.scratch_bytes
      << ", \"verified\": " << (row.difference.empty() ? "true" : "false")
      << ", \"verified_by\": " << json_text(row.verified_by);
  if (!row.difference.empty()) out << ", \"difference\": " << json_text(row.difference);
  out << "}";
}

}  // namespace

void Report::print_setting(const Setting& setting) {
  *table_ << "commit " << setting.commit << ", " << setting.date << '\n';
  for (const std::string& device : setting.devices) *table_ << device << '\n';
  *table_ << '\n'
          << std::left << std::setw(kNameWidth) << "subject" << std::setw(6) << "on" << std::right
          << std::setw(12) << "median us" << std::setw(10) << "GB/s" << std::setw(9) << "of copy"
          << std::setw(11) << "G/s"
          << "  what" << std::endl;
}

void Report::write_to(const std::string& path, const Setting& setting) {
  json_path_ = path;
  setting_ = setting;
  write_json();
}

void Report::add(const Row& row) {
  *table_ << std::left << std::setw(kNameWidth) << row.name << std::setw(6) << row.backend << std::right
          << std::fixed << std::setprecision(1) << std::setw(12) << row.median_seconds * 1e6 << std::setw(10)
          << row.bytes_per_second() / 1e9 << std::setprecision(3) << std::setw(9) << row.share_of_copy()
          << std::setw(11) << row.items_per_second() / 1e9 << "  " << row.unit << ", "
          << (row.difference.empty() ? "verified: " + row.verified_by : "WRONG: " + row.difference)
          << std::endl;
  rows_.push_back(row);
  if (!json_path_.empty()) write_json();
}

bool Report::all_verified() const {
  return std::all_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.difference.empty(); });
}

void Report::write_json() const {
  std::ofstream out(json_path_);
  out << std::setprecision(6) << "{\n  \"commit\": " << json_text(setting_.commit)
      << ",\n  \"date\": " << json_text(setting_.date) << ",\n  \"command\": " << json_text(setting_.command)
      << ",\n  \"devices\": [";
  for (std::size_t i = 0; i < setting_.devices.size(); ++i)
    out << (i > 0 ? ", " : "") << json_text(setting_.devices[i]);
  out << "],\n  \"rows\": [\n";
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    write_row(out, rows_[i]);
    out << (i + 1 < rows_.size() ? ",\n" : "\n");
  }
  out << "  ]\n}\n";
  if (!out.flush()) throw std::runtime_error("--json: cannot write " + json_path_);
}

}  // namespace cumulus::bench
