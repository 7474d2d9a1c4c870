#include "server/runtime/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "server/runtime/command_line.h"
#include "tests/support/temporary_folder.h"

namespace cumulus::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::StatusOr<Configuration> configuration_of(const std::string& text) {
  const auto config = parse_server_config(text, "test.textproto");
  if (!config.ok()) return config.status();
  return resolve_configuration(*config);
}

std::variant<Configuration, ExitNow> run(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "cumulusd");
  return parse_command_line(static_cast<int>(arguments.size()), arguments.data());
}

Configuration accepted(const std::vector<const char*>& arguments) {
  const auto outcome = run(arguments);
  if (const auto* exit = std::get_if<ExitNow>(&outcome)) {
    ADD_FAILURE() << exit->text;
    return default_configuration();
  }
  return std::get<Configuration>(outcome);
}

ExitNow refused(const std::vector<const char*>& arguments) {
  const auto outcome = run(arguments);
  const auto* exit = std::get_if<ExitNow>(&outcome);
  return exit != nullptr ? *exit : ExitNow{0, "nothing was wrong"};
}

TEST(Configuration, AnEmptyFileMeansTheDocumentedDefaults) {
  const Configuration configuration = default_configuration();
  EXPECT_THAT(configuration.listen, ElementsAre("127.0.0.1:50651"));
  EXPECT_FALSE(configuration.insecure);
  EXPECT_TRUE(configuration.reflection);
  EXPECT_EQ(configuration.devices.backend, Backend::kAuto);
  EXPECT_GT(configuration.devices.cpu_memory_bytes, std::size_t{1} << 20);
  EXPECT_FALSE(configuration.devices.gpu_memory_on_demand);
  EXPECT_EQ(configuration.devices.streams, 2);
  EXPECT_EQ(configuration.limits.max_inline_bytes, std::size_t{1} << 20);
  EXPECT_EQ(configuration.limits.max_encoded_bytes, std::size_t{3} << 20);
  EXPECT_EQ(configuration.limits.max_pixels, std::size_t{1} << 29);
  EXPECT_EQ(configuration.limits.max_channels, 64u);
  EXPECT_EQ(configuration.limits.decoded_images_bytes, configuration.devices.cpu_memory_bytes / 2);
  EXPECT_EQ(configuration.limits.max_sessions, 1024u);
  EXPECT_EQ(configuration.limits.max_buffers_per_session, 65536u);
  EXPECT_EQ(configuration.limits.default_ttl, absl::Minutes(10));
  EXPECT_EQ(configuration.limits.max_ttl, absl::Hours(24));
  EXPECT_EQ(configuration.limits.max_deadline, absl::Minutes(10));
  EXPECT_EQ(configuration.limits.stalled_transfer, absl::Seconds(30));
  EXPECT_EQ(configuration.principals.defaults().max_queue_depth, 1024u);
  EXPECT_EQ(configuration.principals.defaults().weight, 1);
  EXPECT_GE(configuration.decoding.threads, 2u);
  EXPECT_LE(configuration.decoding.threads, 4u);
  EXPECT_EQ(configuration.decoding.threads_per_client, configuration.decoding.threads / 2);
  EXPECT_EQ(configuration.decoding.max_waiting, 64u);
  EXPECT_EQ(configuration.decoding.max_waiting_per_client, 16u);
  EXPECT_EQ(configuration.limits.decoder_bytes, std::size_t{32} << 20);
  EXPECT_EQ(configuration.limits.decode_time, absl::Seconds(10));
  EXPECT_EQ(configuration.shutdown.lame_duck, absl::Seconds(5));
  EXPECT_EQ(configuration.shutdown.drain, absl::Seconds(30));
  EXPECT_EQ(configuration.shutdown.grace, absl::Seconds(2));
  EXPECT_EQ(configuration.logging.level, LogLevel::kInfo);
  EXPECT_EQ(configuration.logging.max_pending_bytes, std::size_t{1} << 20);
  EXPECT_EQ(configuration.logging.flush_limit, absl::Milliseconds(200));
}

TEST(Configuration, WhatFollowsFromTheDevicesIsFilledOnceTheyAreOpen) {
  Configuration configuration = default_configuration();
  configuration.apply_device_budget(1000);
  EXPECT_EQ(configuration.limits.max_buffer_bytes, 1000u);
  EXPECT_EQ(configuration.limits.session_quota_bytes, 1000u);
  EXPECT_EQ(configuration.image_limits().max_bytes, 1000u);
  Configuration set = configuration_of("limits { max_buffer_bytes: 7 session_quota_bytes: 9 }").value();
  set.apply_device_budget(1000);
  EXPECT_EQ(set.limits.max_buffer_bytes, 7u);
  EXPECT_EQ(set.limits.session_quota_bytes, 9u);
}

TEST(Configuration, EverySampleLoads) {
  for (const char* name : {"default", "cpu", "gpu", "secure"}) {
    const auto config =
        load_server_config(std::string(CUMULUS_SAMPLE_CONFIGURATIONS) + "/" + name + ".textproto");
    ASSERT_TRUE(config.ok()) << config.status();
    const auto configuration = resolve_configuration(*config);
    EXPECT_TRUE(configuration.ok()) << name << ": " << configuration.status();
  }
}

TEST(Configuration, TheDefaultSampleSaysWhatAnEmptyFileMeans) {
  const auto config = load_server_config(std::string(CUMULUS_SAMPLE_CONFIGURATIONS) + "/default.textproto");
  const Configuration sample = resolve_configuration(config.value()).value();
  const Configuration empty = default_configuration();
  EXPECT_EQ(sample.listen, empty.listen);
  EXPECT_EQ(sample.reflection, empty.reflection);
  EXPECT_EQ(sample.devices.cpu_memory_bytes, empty.devices.cpu_memory_bytes);
  EXPECT_EQ(sample.devices.gpu_memory_on_demand, empty.devices.gpu_memory_on_demand);
  EXPECT_EQ(sample.devices.streams, empty.devices.streams);
  EXPECT_EQ(sample.devices.cpu_calls, empty.devices.cpu_calls);
  EXPECT_EQ(sample.limits.max_inline_bytes, empty.limits.max_inline_bytes);
  EXPECT_EQ(sample.limits.max_encoded_bytes, empty.limits.max_encoded_bytes);
  EXPECT_EQ(sample.limits.max_pixels, empty.limits.max_pixels);
  EXPECT_EQ(sample.limits.max_channels, empty.limits.max_channels);
  EXPECT_EQ(sample.limits.decoded_images_bytes, empty.limits.decoded_images_bytes);
  EXPECT_EQ(sample.limits.default_ttl, empty.limits.default_ttl);
  EXPECT_EQ(sample.limits.max_ttl, empty.limits.max_ttl);
  EXPECT_EQ(sample.limits.max_deadline, empty.limits.max_deadline);
  EXPECT_EQ(sample.limits.stalled_transfer, empty.limits.stalled_transfer);
  EXPECT_EQ(sample.principals.defaults().max_queue_depth, empty.principals.defaults().max_queue_depth);
  EXPECT_EQ(sample.principals.defaults().weight, empty.principals.defaults().weight);
  EXPECT_EQ(sample.decoding.threads, empty.decoding.threads);
  EXPECT_EQ(sample.decoding.threads_per_client, empty.decoding.threads_per_client);
  EXPECT_EQ(sample.decoding.max_waiting_per_client, empty.decoding.max_waiting_per_client);
  EXPECT_EQ(sample.limits.decoder_bytes, empty.limits.decoder_bytes);
  EXPECT_EQ(sample.limits.decode_time, empty.limits.decode_time);
  EXPECT_EQ(sample.shutdown.lame_duck, empty.shutdown.lame_duck);
  EXPECT_EQ(sample.shutdown.drain, empty.shutdown.drain);
  EXPECT_EQ(sample.shutdown.grace, empty.shutdown.grace);
  EXPECT_EQ(sample.logging.level, empty.logging.level);
  EXPECT_EQ(sample.logging.max_pending_bytes, empty.logging.max_pending_bytes);
  EXPECT_EQ(sample.logging.flush_limit, empty.logging.flush_limit);
}

TEST(Configuration, AnOverrideOfAPrincipalKeepsTheDefaultsThatItDoesNotName) {
  const Configuration configuration =
      configuration_of(
          "principals { defaults { max_queue_depth: 9 } "
          "overrides { key: 'local' value { weight: 4 session_quota_bytes: 7 } } }")
          .value();
  EXPECT_EQ(configuration.principals.resolve("ipv4:10.0.0.1:1").limits.weight, 1);
  EXPECT_EQ(configuration.principals.resolve("unix:").limits.weight, 4);
  EXPECT_EQ(configuration.principals.resolve("unix:").limits.session_quota_within(9), 7u);
  EXPECT_EQ(configuration.principals.resolve("unix:").limits.session_quota_within(5), 5u);
  EXPECT_EQ(configuration.principals.resolve("ipv4:10.0.0.1:1").limits.session_quota_within(9), 9u);
  EXPECT_EQ(configuration.principals.resolve("unix:").limits.max_queue_depth, 9u);
}

TEST(Configuration, AnUnknownFieldIsAnErrorWithItsPlace) {
  const absl::Status status = configuration_of("insecure: true\nlimits {\n  max_pixel: 3\n}").status();
  EXPECT_THAT(std::string(status.message()), StartsWith("test.textproto:3:"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("max_pixel"));
}

TEST(Configuration, WhatCannotBeReadIsSaidWithWhatWouldBeRight) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"lisen: \"127.0.0.1:0\"", "\"lisen\"; was listen meant?"},
      {"limits { max_pixel: 5 }", "\"max_pixel\"; was max_pixels meant?"},
      {"shutdown { timeout { seconds: 5 } }", "\"timeout\"; it has lame_duck, drain, grace"},
      {"limits { default_ttl: 600 }", "; in braces: a duration is { seconds: 30 }"},
      {"connections { keepalive: 30s }", "; numbers have no units: bytes are 1073741824"},
      {"observability { metrics: 9464 }", "; text is in quotes"},
      {"shutdown { drain { seconds: \"30\" } }", "; numbers are in no quotes"},
      {"logging { json: yes }", "; use true or false"},
      {"devices { backend: GPU }", "\"backend\"; use CPU or CUDA"},
      {"identity { certificate_roles { key: \"x\" value: ROOT } }", "; use USER or ADMIN or METRICS"}};
  for (const auto& [text, right] : cases)
    EXPECT_THAT(std::string(configuration_of(text).status().message()), HasSubstr(right)) << text;
}

TEST(Configuration, ANameHasOneEntryOfAMap) {
  const auto complaint = [](const std::string& text) {
    return std::string(configuration_of(text).status().message());
  };
  const std::string twice = "overrides { key: 'a' value { weight: 2 } }\n";
  EXPECT_THAT(
      complaint("principals {\n" + twice + "overrides { key: 'b' value { weight: 2 } }\n" + twice + "}"),
      HasSubstr("test.textproto:4: principals.overrides has 3 entries (lines 2, 3, 4) of 2 names"));
  EXPECT_THAT(
      complaint("identity { certificate_roles { key: 'ops' value: ADMIN }\n"
                "certificate_roles { key: 'ops' value: USER } }"),
      HasSubstr("test.textproto:2: identity.certificate_roles has 2 entries (lines 1, 2) of 1 names"));
  EXPECT_TRUE(configuration_of("principals { overrides { key: 'a' value { weight: 2 } } }").ok());
}

TEST(Configuration, EveryWrongFieldIsNamedWithItsPath) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"listen: 'nowhere'", "listen[0]: 'nowhere' has no port; use HOST:PORT"},
      {"listen: '127.0.0.1:0' listen: '0.0.0.0:1'",
       "listen[1]: '0.0.0.0:1' can be reached from other machines"},
      {"devices { backend: 9 }", "devices.backend: is 9; use CPU or CUDA"},
      {"devices { cpu_threads: -1 }", "devices.cpu_threads: is -1; 1 to 4096"},
      {"devices { cpu_calls: 65 }", "devices.cpu_calls: is 65; 1 to 64 is right, or 0 for the default (8)"},
      {"devices { cpu_memory_bytes: -1 }", "devices.cpu_memory_bytes: is -1"},
      {"devices { gpu_memory_bytes: -5 }", "devices.gpu_memory_bytes: is -5"},
      {"devices { streams: 9 }", "devices.streams: is 9; 1 to 8 is right, or 0 for the default (2)"},
      {"limits { decoded_images_bytes: -1 }", "limits.decoded_images_bytes: is -1"},
      {"limits { decoder_bytes: -1 }", "limits.decoder_bytes: is -1"},
      {"limits { decode_time { nanos: 5 } }", "limits.decode_time: is 5ns; at least 1s is right"},
      {"scheduling { decode_threads_per_client: -1 }", "scheduling.decode_threads_per_client: is -1"},
      {"scheduling { max_decode_queue_per_client: -1 }", "scheduling.max_decode_queue_per_client: is -1"},
      {"limits { max_inline_bytes: 3145729 }", "limits.max_inline_bytes: is 3145729; 1 to 3145728"},
      {"limits { max_encoded_bytes: 4000000 }", "limits.max_encoded_bytes: is 4000000; 1 to 3145728"},
      {"limits { max_buffer_bytes: -1 }", "limits.max_buffer_bytes: is -1"},
      {"limits { max_pixels: -1 }", "limits.max_pixels: is -1"},
      {"limits { max_channels: 70000 }", "limits.max_channels: is 70000; 1 to 65536"},
      {"limits { session_quota_bytes: -1 }", "limits.session_quota_bytes: is -1"},
      {"limits { max_sessions: -1 }", "limits.max_sessions: is -1"},
      {"limits { max_buffers_per_session: -1 }", "limits.max_buffers_per_session: is -1"},
      {"limits { default_ttl { seconds: 0 } }", "limits.default_ttl: is 0; at least 1ms"},
      {"limits { default_ttl { seconds: 90000 } }",
       "limits.default_ttl: is 25h; at most limits.max_ttl (24h)"},
      {"limits { max_ttl { seconds: -4 } }", "limits.max_ttl: is -4s"},
      {"limits { max_deadline { seconds: 999999999999 } }", "limits.max_deadline: is 277777777h46m39s"},
      {"limits { stalled_transfer { nanos: 5 } }", "limits.stalled_transfer: is 5ns; at least 1ms"},
      {"principals { defaults { max_queue_depth: -1 } }", "principals.defaults.max_queue_depth: is -1"},
      {"principals { defaults { weight: nan } }", "principals.defaults.weight: is nan; 0.001 to 1000"},
      {"principals { overrides { key: '10.0.0.1' value { weight: -2 } } }",
       "principals.overrides[\"10.0.0.1\"].weight: is -2; 0.001 to 1000"},
      {"scheduling { decode_threads: 300 }", "scheduling.decode_threads: is 300; 1 to 256"},
      {"scheduling { max_decode_queue: -1 }", "scheduling.max_decode_queue: is -1"},
      {"shutdown { lame_duck { seconds: -1 } }", "shutdown.lame_duck: is -1s; at least 0"},
      {"shutdown { drain { seconds: -1 } }", "shutdown.drain: is -1s; at least 0"},
      {"shutdown { grace { seconds: -1 } }", "shutdown.grace: is -1s; at least 0"},
      {"logging { max_pending_bytes: -1 }", "logging.max_pending_bytes: is -1"},
      {"logging { max_pending_bytes: 5 }", "logging.max_pending_bytes: is 5; at least 4096 is right"},
      {"logging { flush_limit { seconds: -1 } }", "logging.flush_limit: is -1s; at least 0"},
      {"logging { level: 'loud' }", "logging.level: is 'loud'; use trace, debug, info, warn or error"},
  };
  for (const auto& [text, message] : wrong) {
    const absl::Status status = configuration_of(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

TEST(Configuration, AllThatIsWrongIsSaidAtOnce) {
  const absl::Status status = configuration_of("devices { streams: 9 } logging { level: 'loud' }").status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("devices.streams"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("\nlogging.level"));
}

TEST(Configuration, TlsAndIdentityGoTogether) {
  const auto good = configuration_of(
      "listen: '0.0.0.0:1' tls { certificate: 'c' key: 'k' client_ca: 'a' } identity { token_file: 't' "
      "certificate_roles { key: 'ops' value: ADMIN } } file_root { folder: '/srv' role: ADMIN }");
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_TRUE(good->identity.required());
  EXPECT_EQ(good->identity.certificate_roles.at("ops"), Role::kAdmin);
  EXPECT_EQ(good->file_root.role, Role::kAdmin);
  EXPECT_FALSE(default_configuration().identity.required());
  const auto complaint = [](const std::string& text) {
    return std::string(configuration_of(text).status().message());
  };
  EXPECT_THAT(complaint("tls { certificate: 'c' }"), HasSubstr("tls.key: is missing"));
  EXPECT_THAT(complaint("tls { key: 'k' }"), HasSubstr("tls.certificate: is missing"));
  EXPECT_THAT(complaint("tls { client_ca: 'a' }"), HasSubstr("tls.client_ca: is of no use without"));
  EXPECT_THAT(complaint("identity { certificate_roles { key: 'ops' value: ADMIN } }"),
              HasSubstr("identity.certificate_roles[\"ops\"]: is of no use without tls.client_ca"));
  EXPECT_THAT(complaint("file_root { folder: '/srv' role: METRICS }"), HasSubstr("use USER or ADMIN"));
}

TEST(CommandLine, FlagsOverrideTheFile) {
  const testing::TemporaryFolder folder;
  const std::string file = folder / "flags.textproto";
  std::ofstream(file) << R"(
    listen: "127.0.0.1:1" reflection: true
    devices { backend: CUDA cpu_threads: 3 } shutdown { lame_duck { seconds: 9 } } logging { level: "error" })";
  const Configuration from_file = accepted({"--config", file.c_str()});
  EXPECT_THAT(from_file.listen, ElementsAre("127.0.0.1:1"));
  EXPECT_EQ(from_file.devices.backend, Backend::kCuda);
  EXPECT_EQ(from_file.shutdown.lame_duck, absl::Seconds(9));

  const Configuration overridden = accepted(
      {"--config",    file.c_str(), "--listen",          "127.0.0.1:0", "--listen", "unix:/tmp/c.sock",
       "--backend",   "cpu",        "--threads",         "2",           "--memory", "3G",
       "--log-level", "debug",      "--log-json",        "--lame-duck", "0.25",     "--no-reflection",
       "--port-file", "/tmp/ports", "--memory-on-demand"});
  EXPECT_THAT(overridden.listen, ElementsAre("127.0.0.1:0", "unix:/tmp/c.sock"));
  EXPECT_EQ(overridden.devices.backend, Backend::kCpu);
  EXPECT_EQ(overridden.devices.cpu_threads, 2);
  EXPECT_EQ(overridden.devices.cpu_memory_bytes, std::size_t{3} << 30);
  EXPECT_EQ(overridden.devices.gpu_memory_bytes, std::size_t{3} << 30);
  EXPECT_FALSE(from_file.devices.gpu_memory_on_demand);
  EXPECT_TRUE(overridden.devices.gpu_memory_on_demand);
  EXPECT_EQ(overridden.logging.level, LogLevel::kDebug);
  EXPECT_TRUE(overridden.logging.json);
  EXPECT_FALSE(overridden.reflection);
  EXPECT_EQ(overridden.shutdown.lame_duck, absl::Milliseconds(250));
  EXPECT_EQ(overridden.port_file, "/tmp/ports");
  EXPECT_EQ(accepted({"--config", file.c_str(), "--backend", "auto"}).devices.backend, Backend::kAuto);
}

TEST(CommandLine, AFileMayBeginWithAByteOrderMark) {
  const testing::TemporaryFolder folder;
  const std::string file = folder / "marked.textproto";
  std::ofstream(file) << "\xEF\xBB\xBFlisten: \"127.0.0.1:1\"\r\n";
  EXPECT_THAT(accepted({"--config", file.c_str()}).listen, ElementsAre("127.0.0.1:1"));
}

TEST(CommandLine, AnAddressThatIsNotLoopbackNeedsTheFlag) {
  const ExitNow exit = refused({"--listen", "0.0.0.0:50651"});
  EXPECT_EQ(exit.code, 1);
  EXPECT_THAT(exit.text, HasSubstr("--insecure"));
  EXPECT_TRUE(accepted({"--listen", "0.0.0.0:50651", "--insecure"}).insecure);
}

TEST(CommandLine, TlsLetsOtherMachinesReachTheServer) {
  const Configuration configuration = accepted({"--listen", "0.0.0.0:50651", "--tls-cert", "c", "--tls-key",
                                                "k", "--tls-client-ca", "a", "--token-file", "t"});
  EXPECT_EQ(configuration.tls.certificate, "c");
  EXPECT_EQ(configuration.tls.client_ca, "a");
  EXPECT_EQ(configuration.identity.token_file, "t");
  EXPECT_FALSE(configuration.insecure);
  EXPECT_THAT(refused({"--listen", "0.0.0.0:50651"}).text, HasSubstr("--tls-cert"));
}

TEST(CommandLine, MakesTokens) {
  const testing::TemporaryFolder folder;
  const std::string file = folder / "tokens";
  const ExitNow made = refused({"token", "alice", "--role", "admin", "--token-file", file.c_str()});
  EXPECT_EQ(made.code, 0);
  EXPECT_THAT(made.text, StartsWith("cumulus_"));
  EXPECT_THAT(refused({"token", "bob"}).text, HasSubstr("bob user "));
  EXPECT_EQ(refused({"token", "a b"}).code, 2);
  EXPECT_EQ(refused({"token"}).code, 2);
  EXPECT_EQ(refused({"token", "alice", "--role", "king"}).code, 2);
}

TEST(CommandLine, WhatIsWrongIsSaidInASentence) {
  EXPECT_EQ(refused({"--nonsense"}).code, 2);
  EXPECT_EQ(refused({"--nonsense"}).text,
            "cumulusd: there is no option --nonsense; cumulusd --help lists what there is\n");
  EXPECT_THAT(refused({"--listem", "127.0.0.1:0"}).text,
              HasSubstr("there is no option --listem; was --listen meant?"));
  EXPECT_THAT(refused({"--thread=4"}).text, HasSubstr("there is no option --thread; was --threads meant?"));
  EXPECT_THAT(refused({"/etc/passwd"}).text,
              HasSubstr("there is no command /etc/passwd; a configuration is named by --config;"));
  EXPECT_THAT(refused({"tokne", "alice"}).text, HasSubstr("there is no command tokne; was token meant?"));
  EXPECT_THAT(refused({"token", "alice", "--rule", "user"}).text,
              HasSubstr("there is no option --rule; was --role meant?"));
  EXPECT_EQ(refused({"--backend", "tpu"}).code, 2);
  EXPECT_THAT(refused({"--backend", "tpu"}).text, HasSubstr("cuda"));
  EXPECT_EQ(refused({"--memory", "lots"}).code, 2);
  EXPECT_EQ(refused({"--memory", "-1"}).code, 2);
  EXPECT_EQ(refused({"--memory", "0"}).code, 2);
  EXPECT_THAT(refused({"--memory", "0"}).text, HasSubstr("--memory: a number above 0 is right, such as 8G;"));
  EXPECT_EQ(refused({"--threads", "-1"}).code, 2);
  EXPECT_EQ(refused({"--lame-duck", "-1"}).code, 2);
  EXPECT_EQ(refused({"--log-level", "loud"}).code, 1);
  EXPECT_EQ(refused({"--config", "/nowhere/at/all"}).code, 1);
  EXPECT_THAT(refused({"--config", "/tmp"}).text, HasSubstr("/tmp: is a folder; --config takes a file"));
  EXPECT_THAT(refused({"--config", "/nowhere/at/all"}).text, HasSubstr("/nowhere/at/all: No such file"));
}

TEST(CommandLine, HelpAndVersionAreNoErrors) {
  EXPECT_EQ(refused({"--help"}).code, 0);
  EXPECT_THAT(refused({"--help"}).text, HasSubstr("--port-file"));
  EXPECT_EQ(refused({"--version"}).code, 0);
  EXPECT_THAT(refused({"--version"}).text, StartsWith("cumulusd "));
}

TEST(Configuration, GpuMemoryIsSharedWhereItIsConfigured) {
  EXPECT_EQ(default_configuration().shared_memory.max_device_bytes, 0u);
  const auto half = configuration_of("shared_memory { max_device_bytes: 1000 }");
  ASSERT_TRUE(half.ok()) << half.status();
  EXPECT_EQ(half->shared_memory.max_device_bytes, 1000u);
  EXPECT_EQ(half->shared_memory.max_device_bytes_per_user, 500u);
  const auto both =
      configuration_of("shared_memory { max_device_bytes: 1000 max_device_bytes_per_user: 900 }");
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->shared_memory.max_device_bytes_per_user, 900u);
  EXPECT_EQ(accepted({"--shared-device-memory", "3M"}).shared_memory.max_device_bytes, std::size_t{3} << 20);
  EXPECT_THAT(std::string(configuration_of("shared_memory { max_device_bytes: -1 }").status().message()),
              HasSubstr("shared_memory.max_device_bytes"));
}

TEST(Configuration, PagesAreServedWhereTheyAreConfigured) {
  EXPECT_EQ(default_configuration().observability.metrics, "");
  EXPECT_EQ(default_configuration().observability.status, "");
  const Configuration flags =
      accepted({"--metrics-address", "0.0.0.0:9464", "--status-address", "[::1]:9465"});
  EXPECT_EQ(flags.observability.metrics, "0.0.0.0:9464");
  EXPECT_EQ(flags.observability.status, "[::1]:9465");
  EXPECT_THAT(refused({"--metrics-address", "9464"}).text,
              HasSubstr("observability.metrics: '9464' has no port"));
  EXPECT_THAT(refused({"--metrics-address", "unix:/run/x"}).text, HasSubstr("pages are served at HOST:PORT"));
  EXPECT_THAT(refused({"--status-address", "0.0.0.0:9465"}).text,
              HasSubstr("observability.status: '0.0.0.0:9465' can be reached from other machines"));
  EXPECT_EQ(accepted({"--status-address", "0.0.0.0:9465", "--insecure"}).observability.status,
            "0.0.0.0:9465");
}

}  // namespace
}  // namespace cumulus::server
