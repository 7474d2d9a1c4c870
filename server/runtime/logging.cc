#include "server/runtime/logging.h"

#include <absl/strings/str_cat.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string_view>
#include <utility>

namespace cumulus::server {
namespace {

// %* is JsonText below.
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","message":%*})";
constexpr const char* kTextPattern = "%Y-%m-%d %H:%M:%S.%e %^%l%$ %v";

std::string quoted(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      json += fmt::format("\\u{:04x}", byte);
    } else {
      json += c;
    }
  }
  return json + "\"";
}

/// The message as a JSON string, so that nothing in it (a client's request id, say) can break the line.
class JsonText final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& line) override {
    const std::string text = quoted({message.payload.data(), message.payload.size()});
    line.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<JsonText>(); }
};

spdlog::level::level_enum spdlog_level(LogLevel level) {
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

/// The server's own failures, as opposed to what clients do wrong.
bool is_servers_fault(absl::StatusCode code) {
  return code == absl::StatusCode::kInternal || code == absl::StatusCode::kUnknown ||
         code == absl::StatusCode::kDataLoss;
}

}  // namespace

absl::Status start_logging(const Configuration::Logging& settings) {
  std::shared_ptr<spdlog::sinks::sink> sink;
  try {
    if (settings.file.empty()) {
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    } else {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(settings.file);
    }
  } catch (const spdlog::spdlog_ex& error) {
    return absl::InvalidArgumentError(absl::StrCat("logging.file: ", error.what()));
  }
  auto logger = std::make_shared<spdlog::logger>("cumulusd", std::move(sink));
  logger->set_level(spdlog_level(settings.level));
  logger->flush_on(spdlog::level::info);
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<JsonText>('*').set_pattern(settings.json ? kJsonPattern : kTextPattern);
  logger->set_formatter(std::move(formatter));
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

void log_call(const CallRecord& call) {
  const auto level = is_servers_fault(call.status.code()) ? spdlog::level::warn : spdlog::level::info;
  if (!spdlog::should_log(level)) return;
  spdlog::log(level, "call method={} client={} request_id={} bytes={} seconds={:.6f} queue={:.6f} compute={:.6f} code={}{}{}",
              call.method, call.client, quoted(call.request_id), call.bytes, call.seconds, call.queue_seconds,
              call.compute_seconds, absl::StatusCodeToString(call.status.code()),
              call.status.ok() ? "" : " error=", call.status.ok() ? "" : quoted(std::string(call.status.message())));
}

}  // namespace cumulus::server
