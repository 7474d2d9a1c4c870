// cumulus_transfer_bench: how fast the client library uploads to and downloads from a server over loopback,
// checksums and all, without and with TLS, and through shared memory, as a ratio to a bare gRPC stream of the
// same messages. All take turns in one run, and so does a memcpy of the same bytes. Exits with 1 where what
// came back is not what was sent.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/harness/commit.h"
#include "bench/service/bare_stream.h"
#include "cumulus/client.h"
#include "server/runtime/configuration.h"
#include "server/runtime/lifecycle.h"
#include "server/runtime/open_devices.h"
#include "server/runtime/runtime.h"
#include "server/runtime/shared_memory/service.h"
#include "server/runtime/shared_memory/socket.h"
#include "server/runtime/transfer/transfer_service.h"
#include "server/services/server_service.h"
#include "server/services/sessions_service.h"
#include "tests/support/certificates.h"

namespace cumulus::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  std::size_t mebibytes = 256;
  int rounds = 9;
  std::string backend = "auto";
  std::string json;
};

template <class T>
T value_or_throw(absl::StatusOr<T> result, const std::string& what) {
  if (!result.ok()) throw std::runtime_error(what + ": " + result.status().ToString());
  return *std::move(result);
}

server::Configuration configuration(const std::string& backend) {
  server::Configuration settings = server::default_configuration();
  settings.listen = {"127.0.0.1:0"};
  settings.devices.backend = backend == "cpu"    ? server::Backend::kCpu
                             : backend == "cuda" ? server::Backend::kCuda
                                                 : server::Backend::kAuto;
  settings.shutdown.lame_duck = absl::ZeroDuration();
  return settings;
}

/// A server without operations, in this process.
class Server {
 public:
  Server(server::Configuration settings, const std::shared_ptr<server::Certificates>& certificates)
      : runtime_(open(settings)),
        sessions_(runtime_),
        transfer_(runtime_),
        socket_(value_or_throw(server::SharedMemorySocket::start(runtime_), "shared memory")),
        shared_(runtime_, transfer_, socket_.get()),
        capabilities_(runtime_, socket_->address()),
        lifecycle_(
            value_or_throw(server::ServerLifecycle::start(runtime_.configuration,
                                                          {&sessions_, &transfer_, &shared_, &capabilities_},
                                                          {nullptr, certificates}),
                           "server")) {}
  ~Server() { lifecycle_.drain(runtime_.configuration.shutdown, runtime_); }

  const std::string& address() const { return lifecycle_.addresses().front(); }
  std::string device() const {
    const server::Device& device = *runtime_.devices.front().device;
    return device.name() + ": " + device.model();
  }

 private:
  static server::Runtime open(server::Configuration& settings) {
    auto devices = value_or_throw(server::open_devices(settings), "devices");
    return {settings, std::move(devices)};
  }

  server::Runtime runtime_;
  server::SessionsService sessions_;
  server::TransferService transfer_;
  const std::unique_ptr<server::SharedMemorySocket> socket_;
  server::SharedMemoryService shared_;
  server::ServerService capabilities_;
  server::ServerLifecycle lifecycle_;
};

/// Files of an authority, and of a certificate of 127.0.0.1 that it issued.
class TlsFilesOfTheRun {
 public:
  TlsFilesOfTheRun() {
    std::string name = (std::filesystem::temp_directory_path() / "cumulus-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder like " + name);
    folder_ = name;
    testing::write_text(folder_ / "ca.pem", authority_.certificate());
    testing::write_text(folder_ / "server.pem", server_.certificate());
    testing::write_text(folder_ / "server.key", server_.key());
  }
  ~TlsFilesOfTheRun() { std::filesystem::remove_all(folder_); }
  TlsFilesOfTheRun(const TlsFilesOfTheRun&) = delete;
  TlsFilesOfTheRun& operator=(const TlsFilesOfTheRun&) = delete;

  std::shared_ptr<server::Certificates> server() const {
    return value_or_throw(server::Certificates::load({folder_ / "server.pem", folder_ / "server.key", ""}),
                          "TLS");
  }
  ConnectOptions client() const {
    ConnectOptions options;
    options.shared_memory = false;
    options.credentials = Credentials{.tls_ca = folder_ / "ca.pem"};
    return options;
  }
  std::shared_ptr<grpc::ServerCredentials> bare_server() const {
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({server_.key(), server_.certificate()});
    return grpc::SslServerCredentials(options);
  }
  std::shared_ptr<grpc::ChannelCredentials> bare_client() const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = authority_.certificate();
    return grpc::SslCredentials(options);
  }

 private:
  const testing::TestCertificate authority_{"authority"};
  const testing::TestCertificate server_{"server", "IP:127.0.0.1", &authority_};
  std::filesystem::path folder_;
};

/// A client of one server with a buffer that lies there.
class Transfers {
 public:
  Transfers(const std::string& address, const ConnectOptions& options, const ArrayView& array)
      : client_(value_or_throw(Client::connect(address, options), "connect")),
        session_(value_or_throw(client_.create_session(), "session")),
        array_(array),
        resident_(value_or_throw(session_.upload(array), "upload")) {}

  void upload() const { value_or_throw(session_.upload(array_), "upload"); }
  /// An array that lies in memory that the server shares, with the same elements.
  Array shared_array() const {
    Array shared = value_or_throw(session_.allocate_shared(array_.type(), array_.shape()), "shared array");
    std::memcpy(shared.mutable_bytes().data(), array_.bytes().data(), array_.bytes().size());
    return shared;
  }
  void upload(const Array& array) const { value_or_throw(session_.upload(array.view()), "upload"); }
  void download(std::span<std::byte> into) const {
    if (const absl::Status status = session_.download(resident_, into); !status.ok())
      throw std::runtime_error("download: " + status.ToString());
  }

 private:
  const Client client_;
  const Session session_;
  const ArrayView array_;
  const Buffer resident_;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Seconds that all threads of this process, both ends of the transfers, have computed.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Subject {
  std::string name;
  std::function<void()> run;
  std::function<void()> prepare = [] {};  // before each run, and not counted
  std::vector<double> seconds = {};
  std::vector<double> cpu_seconds = {};
};

/// The median, over the rounds, of one subject's rate as a part of another's in the same round.
double ratio(const Subject& subject, const Subject& bare) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < subject.seconds.size(); ++i)
    ratios.push_back(bare.seconds[i] / subject.seconds[i]);
  return median(ratios);
}

void take_turns(std::vector<Subject>& subjects, int rounds) {
  for (int round = -1; round < rounds; ++round) {  // the first is not counted
    for (Subject& subject : subjects) {
      subject.prepare();
      const Clock::time_point start = Clock::now();
      const double cpu_start = cpu_seconds();
      subject.run();
      if (round < 0) continue;
      subject.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
      subject.cpu_seconds.push_back(cpu_seconds() - cpu_start);
    }
  }
}

void write_json(const std::string& path, const std::vector<Subject>& subjects, std::size_t bytes,
                const std::string& device, const std::string& command) {
  std::ofstream out(path);
  out << "{\n  \"commit\": \"" << kCommit << "\",\n  \"command\": \"" << command << "\",\n  \"device\": \""
      << device << "\",\n  \"bytes\": " << bytes << ",\n  \"rows\": [\n";
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    out << "    {\"name\": \"" << subjects[i].name << "\", \"rounds\": " << subjects[i].seconds.size()
        << ", \"median_seconds\": " << median(subjects[i].seconds)
        << ", \"median_cpu_seconds\": " << median(subjects[i].cpu_seconds)
        << ", \"ratio_to_bare\": " << ratio(subjects[i], subjects[i % 2])
        << (i + 1 < subjects.size() ? "},\n" : "}\n");
  }
  out << "  ]\n}\n";
  if (!out.flush()) throw std::runtime_error("--json: cannot write " + path);
}

int measure(const Arguments& arguments, const std::string& command) {
  const std::size_t bytes = arguments.mebibytes << 20;
  const TlsFilesOfTheRun tls_files;
  Server server(configuration(arguments.backend), nullptr);
  Server tls_server(configuration(arguments.backend), tls_files.server());
  const BareServer bare_server(server::kMaxChunkBytes);
  BareClient bare(bare_server.address(), server::kMaxChunkBytes);
  const BareServer bare_tls_server(server::kMaxChunkBytes, tls_files.bare_server());
  BareClient bare_tls(bare_tls_server.address(), server::kMaxChunkBytes, tls_files.bare_client());
  std::vector<std::uint8_t> sent(bytes);
  std::mt19937_64 random(1);
  std::generate(sent.begin(), sent.end(), [&] { return static_cast<std::uint8_t>(random()); });
  std::vector<std::byte> received(bytes);
  const ArrayView array{std::span<const std::uint8_t>(sent), {static_cast<std::int64_t>(bytes)}};
  ConnectOptions plain_options;
  plain_options.credentials = Credentials();
  const Transfers shared(server.address(), plain_options, array);
  plain_options.shared_memory = false;
  const Transfers plain(server.address(), plain_options, array);
  const Transfers tls(tls_server.address(), tls_files.client(), array);
  std::optional<Array> born_shared;
  Array filled_shared = shared.shared_array();
  std::vector<Subject> subjects = {
      {"bare upload", [&] { bare.upload(bytes); }},
      {"bare download", [&] { bare.download(bytes); }},
      {"upload", [&] { plain.upload(); }},
      {"download", [&] { plain.download(received); }},
      {"upload, TLS", [&] { tls.upload(); }},
      {"download, TLS", [&] { tls.download(received); }},
      {"bare up, TLS", [&] { bare_tls.upload(bytes); }},
      {"bare down, TLS", [&] { bare_tls.download(bytes); }},
      {"upload, shared", [&] { shared.upload(); }},
      {"download, shared", [&] { shared.download(received); }},
      {"of a region", [&] { shared.upload(*born_shared); }, [&] { born_shared = shared.shared_array(); }},
      {"into a region", [&] { shared.download(filled_shared.mutable_bytes()); },
       [&] { std::memset(filled_shared.mutable_bytes().data(), 0, bytes); }},
      {"memcpy", [&] { std::memcpy(received.data(), sent.data(), bytes); }},
  };
  take_turns(subjects, arguments.rounds);

  std::printf("%s, %zu MiB over loopback, %d rounds, medians\n", server.device().c_str(), arguments.mebibytes,
              arguments.rounds);
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const double seconds = median(subjects[i].seconds);
    std::printf("%-16s %8.4f s %8.2f GB/s %6.2f CPU s/GiB  ratio to bare %5.2f\n", subjects[i].name.c_str(),
                seconds, static_cast<double>(bytes) / 1e9 / seconds,
                median(subjects[i].cpu_seconds) * 1024 / static_cast<double>(arguments.mebibytes),
                ratio(subjects[i], subjects[i % 2]));
  }
  const bool verified =
      std::equal(received.begin(), received.end(), reinterpret_cast<const std::byte*>(sent.data())) &&
      std::equal(received.begin(), received.end(), filled_shared.bytes().data());
  std::printf("what came back is %s what was sent\n", verified ? "exactly" : "NOT");
  if (!arguments.json.empty()) write_json(arguments.json, subjects, bytes, server.device(), command);
  return verified ? 0 : 1;
}

}  // namespace
}  // namespace cumulus::bench

int main(int argc, char** argv) {
  CLI::App app{"Measures uploads and downloads against a bare gRPC stream, in one interleaved run.",
               "cumulus_transfer_bench"};
  cumulus::bench::Arguments arguments;
  app.add_option("--size", arguments.mebibytes, "MiB a transfer")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--rounds", arguments.rounds, "Rounds that count")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--backend", arguments.backend, "cpu, cuda or auto")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}))
      ->capture_default_str();
  app.add_option("--json", arguments.json, "Write the rows there too")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);
  std::string command = "cumulus_transfer_bench";
  for (int i = 1; i < argc; ++i) command += std::string(" ") + argv[i];
  try {
    return cumulus::bench::measure(arguments, command);
  } catch (const std::exception& error) {
    std::cerr << "cumulus_transfer_bench: " << error.what() << "\n";
    return 1;
  }
}
