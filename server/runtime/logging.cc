#include "server/runtime/logging.h"

#include <google/protobuf/stubs/logging.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <iterator>
#include <memory>
#include <string_view>

#include "server/pipeline/text.h"

namespace cumulus::server {
namespace {

constexpr const char* kCallLogger = "call";

// What log_call writes depends on it; set once, at set-up.
std::atomic<bool> json_lines{false};

/// `text` as the inside of a JSON string; also keeps what clients send from forging lines of the log.
std::string escaped(std::string_view text) {
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

/// {"time":...,"level":...,"message":...}; what the call logger writes is already fields.
class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    head_.format(message, out);
    const std::string_view payload(message.payload.data(), message.payload.size());
    const bool is_call =
        std::string_view(message.logger_name.data(), message.logger_name.size()) == kCallLogger;
    const std::string fields =
        is_call ? std::string(payload) : concat("\"message\":\"", escaped(payload), "\"");
    out.append(fields);
    out.append(std::string_view("}\n"));
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(); }

 private:
  spdlog::pattern_formatter head_{R"({"time":"%Y-%m-%dT%H:%M:%S.%f%z","level":"%l",)",
                                  spdlog::pattern_time_type::local, ""};
};

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

std::string text_line(const CallRecord& call, std::string_view code) {
  std::string line = fmt::format("{} {} in {:.1f} ms, {} bytes, from {}", call.method, code,
                                 call.seconds * 1e3, call.bytes, call.client);
  if (!call.request_id.empty()) line += fmt::format(", request \"{}\"", escaped(call.request_id));
  if (call.queue_seconds + call.input_seconds + call.compute_seconds + call.output_seconds > 0) {
    line += fmt::format(" (queue {:.1f}, input {:.1f}, compute {:.1f}, output {:.1f} ms)",
                        call.queue_seconds * 1e3, call.input_seconds * 1e3, call.compute_seconds * 1e3,
                        call.output_seconds * 1e3);
  }
  if (!call.status.ok()) line += concat(": ", escaped(to_std_view(call.status.message())));
  return line;
}

std::string json_fields(const CallRecord& call, std::string_view code) {
  return fmt::format(
      R"("method":"{}","code":"{}","seconds":{:.6f},"bytes":{},"client":"{}","request_id":"{}",)"
      R"("queue_seconds":{:.6f},"input_seconds":{:.6f},"compute_seconds":{:.6f},"output_seconds":{:.6f},)"
      R"("message":"{}")",
      escaped(call.method), code, call.seconds, call.bytes, escaped(call.client), escaped(call.request_id),
      call.queue_seconds, call.input_seconds, call.compute_seconds, call.output_seconds,
      escaped(to_std_view(call.status.message())));
}

}  // namespace

absl::Status start_logging(const Configuration::Logging& logging) {
  spdlog::sink_ptr sink;
  try {
    if (logging.file.empty()) {
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    } else {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(logging.file);
    }
  } catch (const spdlog::spdlog_ex& error) {
    return absl::InvalidArgumentError(
        concat("logging.file: ", error.what(), "; name a file that can be written"));
  }
  json_lines = logging.json;
  if (logging.json) {
    sink->set_formatter(std::make_unique<JsonFormatter>());
  } else {
    sink->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
  }
  spdlog::drop(kCallLogger);
  auto calls = std::make_shared<spdlog::logger>(kCallLogger, sink);
  auto general = std::make_shared<spdlog::logger>("", sink);
  for (const auto& logger : {calls, general}) {
    logger->set_level(to_spdlog(logging.level));
    logger->flush_on(spdlog::level::trace);
  }
  spdlog::register_logger(calls);
  spdlog::set_default_logger(general);
  // protobuf complains of what clients send; that is an answer to them, and no error of ours.
  google::protobuf::SetLogHandler([](google::protobuf::LogLevel, const char*, int,
                                     const std::string& message) { spdlog::debug("protobuf: {}", message); });
  return absl::OkStatus();
}

void log_call(const CallRecord& call) {
  const std::shared_ptr<spdlog::logger> logger = spdlog::get(kCallLogger);
  const auto level = server_at_fault(call.status.code()) ? spdlog::level::err : spdlog::level::info;
  if (logger == nullptr || !logger->should_log(level)) return;
  const std::string code = absl::StatusCodeToString(call.status.code());
  logger->log(level, spdlog::string_view_t(json_lines ? json_fields(call, code) : text_line(call, code)));
}

}  // namespace cumulus::server
