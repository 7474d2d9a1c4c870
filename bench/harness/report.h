#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

namespace cumulus::bench {

/// One measured subject on one device.
struct Row {
  std::string name;
  std::string backend;  // "cpu" or "cuda"
  std::size_t samples = 0;
  double median_seconds = 0;
  double fastest_seconds = 0;
  std::size_t bytes = 0;
  double copy_seconds = 0;  // median of a copy that moves as many bytes, in the same run
  double items = 0;
  std::string unit;
  std::size_t scratch_bytes = 0;
  std::string difference;  // empty: the result verified
  std::string verified_by;

  double bytes_per_second() const { return static_cast<double>(bytes) / median_seconds; }
  double items_per_second() const { return items / median_seconds; }
  double share_of_copy() const { return copy_seconds / median_seconds; }
};

/// Where and with what the rows were measured.
struct Setting {
  std::string commit;
  std::string date;  // UTC, ISO 8601
  std::string command;
  std::vector<std::string> devices;
};

/// Collects rows; prints each as it comes.
class Report {
 public:
  explicit Report(std::ostream& table) : table_(&table) {}

  void print_setting(const Setting& setting);
  /// From now on the rows are written to this file too, all of them anew after each: what is cut off in the
  /// middle leaves its rows. Throws std::runtime_error where that is impossible.
  void write_to(const std::string& path, const Setting& setting);
  void add(const Row& row);

  const std::vector<Row>& rows() const { return rows_; }
  bool all_verified() const;

 private:
  void write_json() const;

  std::ostream* table_;
  std::string json_path_;  // empty: none
  Setting setting_;
  std::vector<Row> rows_;
};

}  // namespace cumulus::bench
