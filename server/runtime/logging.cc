#include "server/runtime/logging.h"

#include <fcntl.h>
#include <google/protobuf/stubs/logging.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "server/pipeline/text.h"
#include "server/runtime/log_writer.h"

namespace cumulus::server {
namespace {

constexpr const char* kCallLogger = "call";

// What log_call writes depends on it; set once, at set-up.
std::atomic<bool> json_lines{false};

/// {"time":...,"level":...,"message":...}; what the call logger writes is already fields.
class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    head_.format(message, out);
    const std::string_view payload(message.payload.data(), message.payload.size());
    const bool is_call =
        std::string_view(message.logger_name.data(), message.logger_name.size()) == kCallLogger;
    const std::string fields =
        is_call ? std::string(payload) : concat("\"message\":\"", json_escaped(payload), "\"");
    out.append(fields);
    out.append(std::string_view("}\n"));
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(); }

 private:
  spdlog::pattern_formatter head_{R"({"time":"%Y-%m-%dT%H:%M:%S.%f%z","level":"%l",)",
                                  spdlog::pattern_time_type::local, ""};
};

std::unique_ptr<spdlog::formatter> make_formatter(bool json) {
  if (json) return std::make_unique<JsonFormatter>();
  return std::make_unique<spdlog::pattern_formatter>("%Y-%m-%d %H:%M:%S.%e %l %v");
}

/// Lines of the writer's own, which has a formatter of its own: it writes while others log.
LogWriter::DroppedLine dropped_line(bool json) {
  return [formatter = std::shared_ptr<spdlog::formatter>(make_formatter(json))](std::uint64_t count,
                                                                                int error) {
    spdlog::memory_buf_t line;
    const std::string why = error == 0 ? "the log was not read fast enough"
                                       : concat("the log could not be written (", std::strerror(error), ")");
    const std::string text = concat(count, " log lines were dropped: ", why);
    formatter->format(spdlog::details::log_msg("", spdlog::level::warn, text), line);
    return std::string(line.data(), line.size());
  };
}

/// A private descriptor of standard error, or of nothing where the daemon was started without one.
int open_standard_error() {
  const int file = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  return file >= 0 ? file : ::open("/dev/null", O_WRONLY | O_CLOEXEC);
}

/// Negative where it cannot be opened. Non-blocking, so that a FIFO without a reader is an error at once.
int open_log_file(const std::string& path) {
  constexpr mode_t kMode = 0666;
  return ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, kMode);
}

/// Formats in the thread that logs, and leaves the writing to another.
class WriterSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  WriterSink(int file, const Configuration::Logging& logging)
      : base_sink(make_formatter(logging.json)),
        path_(logging.file),
        writer_(file, logging.max_pending_bytes, dropped_line(logging.json)) {}

  const std::string& path() const { return path_; }
  LogWriter& writer() { return writer_; }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    writer_.push({line.data(), line.size()});
  }
  void flush_() override {}  // flush_log does it, with a limit

 private:
  const std::string path_;
  LogWriter writer_;
};

/// Where the log goes; null before start_logging.
std::shared_ptr<WriterSink>& current_sink() {
  static std::shared_ptr<WriterSink> sink;
  return sink;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

bool server_at_fault(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal || code == absl::StatusCode::kUnknown ||
         code == absl::StatusCode::kDataLoss;
}

/// `value`, which is not negative, with so many digits behind the point; fmt takes four times as long for a
/// double, which of small calls is a part that counts.
template <int kDigits>
void append_number(std::string& line, double value) {
  constexpr std::uint64_t kUnit = kDigits == 1 ? 10 : 1'000'000;
  static_assert(kDigits == 1 || kDigits == 6);
  const auto units = static_cast<std::uint64_t>(std::llround(std::max(value, 0.0) * kUnit));
  const fmt::format_int whole(units / kUnit);
  line.append(whole.data(), whole.size());
  const fmt::format_int fraction(units % kUnit + kUnit);  // behind a 1, so that zeros stay
  line += '.';
  line.append(fraction.data() + 1, fraction.size() - 1);
}

void append_milliseconds(std::string& line, std::string_view name, double seconds) {
  line += name;
  append_number<1>(line, seconds * 1e3);
}

void append_seconds(std::string& line, std::string_view name, double seconds) {
  line += ",\"";
  line += name;
  line += "\":";
  append_number<6>(line, seconds);
}

std::string text_line(const CallRecord& call, std::string_view code) {
  std::string line = concat(call.method, " ", code);
  append_milliseconds(line, " in ", call.seconds);
  line += concat(" ms, ", call.bytes, " bytes, from ", call.client);
  const bool named = !call.principal.empty() && call.client.find(call.principal) == std::string::npos;
  if (named) line += concat(" as ", json_escaped(call.principal));
  if (!call.request_id.empty()) line += concat(", request \"", json_escaped(call.request_id), "\"");
  if (call.queue_seconds + call.input_seconds + call.compute_seconds + call.output_seconds > 0) {
    append_milliseconds(line, " (queue ", call.queue_seconds);
    append_milliseconds(line, ", input ", call.input_seconds);
    append_milliseconds(line, ", compute ", call.compute_seconds);
    append_milliseconds(line, ", output ", call.output_seconds);
    line += " ms)";
  }
  if (!call.trace.empty()) line += concat(", trace ", call.trace.trace_id, " span ", call.trace.span_id);
  if (!call.status.ok()) line += concat(": ", json_escaped(to_std_view(call.status.message())));
  return line;
}

std::string json_trace(const TraceContext& trace) {
  if (trace.empty()) return {};
  return fmt::format(R"(,"trace_id":"{}","span_id":"{}","parent_span_id":"{}","trace_flags":"{}")",
                     trace.trace_id, trace.span_id, trace.parent_id, trace.flags);
}

std::string json_fields(const CallRecord& call, std::string_view code) {
  std::string line = concat(R"("method":")", json_escaped(call.method), R"(","code":")", code, "\"");
  append_seconds(line, "seconds", call.seconds);
  line +=
      concat(R"(,"bytes":)", call.bytes, R"(,"client":")", json_escaped(call.client), R"(","principal":")",
             json_escaped(call.principal), R"(","request_id":")", json_escaped(call.request_id), "\"");
  append_seconds(line, "queue_seconds", call.queue_seconds);
  append_seconds(line, "input_seconds", call.input_seconds);
  append_seconds(line, "compute_seconds", call.compute_seconds);
  append_seconds(line, "output_seconds", call.output_seconds);
  line += concat(R"(,"message":")", json_escaped(to_std_view(call.status.message())), "\"");
  return line + json_trace(call.trace);
}

}  // namespace

std::string json_escaped(std::string_view text) {
  const auto is_plain = [](char c) {
    return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20 && c != 0x7F;
  };
  if (std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      fmt::format_to(std::back_inserter(result), "\\u{:04x}", static_cast<unsigned int>(c));
    } else {
      result += c;
    }
  }
  return result;
}

absl::Status start_logging(const Configuration::Logging& logging) {
  const int file = logging.file.empty() ? open_standard_error() : open_log_file(logging.file);
  if (file < 0) {
    return absl::InvalidArgumentError(concat("logging.file: cannot open '", logging.file, "': ",
                                             std::strerror(errno), "; name a file that can be written"));
  }
  json_lines = logging.json;
  const auto sink = std::make_shared<WriterSink>(file, logging);
  current_sink() = sink;
  spdlog::drop(kCallLogger);
  auto calls = std::make_shared<spdlog::logger>(kCallLogger, sink);
  auto general = std::make_shared<spdlog::logger>("", sink);
  for (const auto& logger : {calls, general}) logger->set_level(to_spdlog(logging.level));
  spdlog::register_logger(calls);
  spdlog::set_default_logger(general);
  // protobuf complains of what clients send; that is an answer to them, and no error of ours.
  google::protobuf::SetLogHandler([](google::protobuf::LogLevel, const char*, int,
                                     const std::string& message) { spdlog::debug("protobuf: {}", message); });
  return absl::OkStatus();
}

void reopen_log() {
  const std::shared_ptr<WriterSink> sink = current_sink();
  if (sink == nullptr) return;
  if (sink->path().empty()) {
    spdlog::info("the log is standard error: there is no file to reopen");
    return;
  }
  const int file = open_log_file(sink->path());
  if (file < 0) {
    spdlog::error("cannot reopen the log file '{}': {}; the log stays where it was", sink->path(),
                  std::strerror(errno));
    return;
  }
  sink->writer().switch_to(file);
  spdlog::info("the log file was reopened");
}

bool flush_log(absl::Duration limit) {
  const std::shared_ptr<WriterSink> sink = current_sink();
  return sink == nullptr || sink->writer().flush(absl::ToChronoMilliseconds(limit));
}

std::uint64_t dropped_log_lines() {
  const std::shared_ptr<WriterSink> sink = current_sink();
  return sink == nullptr ? 0 : sink->writer().dropped();
}

void log_call(const CallRecord& call) {
  const std::shared_ptr<spdlog::logger> logger = spdlog::get(kCallLogger);
  const auto level = server_at_fault(call.status.code()) ? spdlog::level::err : spdlog::level::info;
  if (logger == nullptr || !logger->should_log(level)) return;
  const std::string code = absl::StatusCodeToString(call.status.code());
  logger->log(level, spdlog::string_view_t(json_lines ? json_fields(call, code) : text_line(call, code)));
}

}  // namespace cumulus::server
