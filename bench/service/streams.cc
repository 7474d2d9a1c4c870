// cumulus_streams_bench: what uploads to and downloads from a daemon gain by several connections, over
// loopback TCP and over a Unix socket, checksums and all, as a part of what plain sockets move. All take
// turns in one run. Exits with 1 where what came back is not what was sent.
//
//   cumulusd --listen 127.0.0.1:50651 --listen unix:/tmp/cumulus.socket &
//   cumulus_streams_bench --tcp 127.0.0.1:50651 --unix unix:/tmp/cumulus.socket
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/harness/commit.h"
#include "bench/service/plain_sockets.h"
#include "cumulus/client.h"
#include "proto/process.h"

namespace cumulus::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  std::size_t mebibytes = 256;
  int rounds = 9;
  std::string tcp;
  std::string local;
  std::string json;
};

template <class T>
T value_or_throw(absl::StatusOr<T> result, const std::string& what) {
  if (!result.ok()) throw std::runtime_error(what + ": " + result.status().ToString());
  return *std::move(result);
}

Client connect(const std::string& address) {
  ConnectOptions options;
  options.credentials = Credentials();
  return value_or_throw(Client::connect(address, options), "connect to " + address);
}

/// A client with a buffer on the server, which is what it downloads.
class Transfers {
 public:
  Transfers(const std::string& address, std::span<const std::uint8_t> bytes)
      : client_(connect(address)),
        session_(value_or_throw(client_.create_session(), "session")),
        array_{bytes, {static_cast<std::int64_t>(bytes.size())}},
        resident_(value_or_throw(session_.upload(array_), "upload")) {}

  void upload(int connections) const {
    UploadOptions options;
    options.connections = connections;
    value_or_throw(session_.upload(array_, options), "upload");
  }
  void download(std::span<std::byte> into, int connections) const {
    DownloadOptions options;
    options.connections = connections;
    const absl::Status status = session_.download(resident_, into, options);
    if (!status.ok()) throw std::runtime_error("download: " + status.ToString());
  }

 private:
  const Client client_;
  const Session session_;
  const ArrayView array_;
  const Buffer resident_;
};

/// Clients with a connection and a part of the bytes each, which move at the same time.
class ManyClients {
 public:
  ManyClients(std::size_t count, const std::string& address, std::span<const std::uint8_t> sent,
              std::span<std::byte> received)
      : part_(sent.size() / count), received_(received) {
    for (std::size_t i = 0; i < count; ++i)
      clients_.push_back(std::make_unique<Transfers>(address, sent.subspan(i * part_, part_)));
  }

  void upload() const {
    at_once([](const Transfers& client, std::size_t) { client.upload(1); });
  }
  void download() const {
    at_once([this](const Transfers& client, std::size_t i) {
      client.download(received_.subspan(i * part_, part_), 1);
    });
  }

 private:
  void at_once(const std::function<void(const Transfers&, std::size_t)>& work) const {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < clients_.size(); ++i) threads.emplace_back([&, i] { work(*clients_[i], i); });
    for (std::thread& thread : threads) thread.join();
  }

  const std::size_t part_;
  const std::span<std::byte> received_;
  std::vector<std::unique_ptr<Transfers>> clients_;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

enum class Way { kUp, kDown };

/// The same both ways.
struct Subject {
  std::string name;
  std::function<void(Way)> run;
  std::vector<double> seconds[2] = {};
};

/// The median, over the rounds, of one subject's rate as a part of another's in the same round.
double ratio(const Subject& subject, const Subject& other, Way way) {
  const auto i = static_cast<std::size_t>(way);
  std::vector<double> ratios;
  for (std::size_t round = 0; round < subject.seconds[i].size(); ++round)
    ratios.push_back(other.seconds[i][round] / subject.seconds[i][round]);
  return median(ratios);
}

void take_turns(std::vector<Subject>& subjects, int rounds) {
  for (int round = -1; round < rounds; ++round) {  // the first is not counted
    for (Subject& subject : subjects) {
      for (const Way way : {Way::kUp, Way::kDown}) {
        const Clock::time_point start = Clock::now();
        subject.run(way);
        const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        if (round >= 0) subject.seconds[static_cast<std::size_t>(way)].push_back(seconds);
      }
    }
  }
}

void write_json(const std::string& path, const std::vector<Subject>& subjects, std::size_t bytes,
                const std::string& command) {
  std::ofstream out(path);
  out << "{\n  \"commit\": \"" << kCommit << "\",\n  \"command\": \"" << command
      << "\",\n  \"cores\": " << std::thread::hardware_concurrency() << ",\n  \"bytes\": " << bytes
      << ",\n  \"rows\": [\n";
  for (const Subject& subject : subjects) {
    out << "    {\"name\": \"" << subject.name << "\"";
    for (const Way way : {Way::kUp, Way::kDown}) {
      const double seconds = median(subject.seconds[static_cast<std::size_t>(way)]);
      const std::string name = way == Way::kUp ? "up" : "down";
      out << ", \"" << name << "_gb_s\": " << static_cast<double>(bytes) / 1e9 / seconds << ", \"" << name
          << "_to_plain\": " << ratio(subject, subjects.front(), way);
    }
    out << (&subject != &subjects.back() ? "},\n" : "}\n");
  }
  out << "  ]\n}\n";
  if (!out.flush()) throw std::runtime_error("--json: cannot write " + path);
}

void print(const std::vector<Subject>& subjects, std::size_t bytes) {
  std::printf("%-26s %8s %8s  of one plain TCP connection: %4s %5s\n", "GB/s", "up", "down", "up", "down");
  for (const Subject& subject : subjects) {
    const auto rate = [&](Way way) {
      return static_cast<double>(bytes) / 1e9 / median(subject.seconds[static_cast<std::size_t>(way)]);
    };
    std::printf("%-26s %8.2f %8.2f %33.2f %5.2f\n", subject.name.c_str(), rate(Way::kUp), rate(Way::kDown),
                ratio(subject, subjects.front(), Way::kUp), ratio(subject, subjects.front(), Way::kDown));
  }
}

int measure(const Arguments& arguments, const std::string& command) {
  const PlainServer plain_server;
  prepare_process();
  const std::size_t bytes = arguments.mebibytes << 20;
  std::vector<std::uint8_t> sent(bytes);
  std::mt19937_64 random(1);
  std::generate(sent.begin(), sent.end(), [&] { return static_cast<std::uint8_t>(random()); });
  std::vector<std::byte> received(bytes);
  std::vector<Subject> subjects;
  std::vector<std::shared_ptr<const void>> kept;
  const auto add = [&](const std::string& name, auto subject, const auto& run) {
    kept.push_back(subject);
    subjects.push_back({name, [subject, run](Way way) { run(*subject, way); }});
  };
  const auto run_plain = [&](const PlainClient& plain, Way way) {
    way == Way::kUp ? plain.upload(std::as_bytes(std::span(sent))) : plain.download(received);
  };
  for (const int connections : {1, 2, 4, 8}) {
    add("plain TCP, " + std::to_string(connections),
        std::make_shared<PlainClient>(plain_server, PlainClient::Over::kTcp, connections), run_plain);
  }
  for (const int connections : {1, 4}) {
    add("plain Unix, " + std::to_string(connections),
        std::make_shared<PlainClient>(plain_server, PlainClient::Over::kUnix, connections), run_plain);
  }
  const auto add_transfers = [&](const std::string& name, const std::string& address,
                                 std::initializer_list<int> counts) {
    const auto transfers = std::make_shared<Transfers>(address, sent);
    for (const int connections : counts) {
      add(name + ", " + std::to_string(connections), transfers,
          [&, connections](const Transfers& it, Way way) {
            way == Way::kUp ? it.upload(connections) : it.download(received, connections);
          });
    }
  };
  add_transfers("TCP", arguments.tcp, {1, 2, 4, 8});
  add_transfers("Unix", arguments.local, {1, 2, 4});
  for (const std::size_t count : {std::size_t{4}, std::size_t{8}}) {
    add(std::to_string(count) + " clients, TCP",
        std::make_shared<ManyClients>(count, arguments.tcp, sent, received),
        [](const ManyClients& clients, Way way) { way == Way::kUp ? clients.upload() : clients.download(); });
  }
  std::fill(received.begin(), received.end(), std::byte{0});
  take_turns(subjects, arguments.rounds);
  print(subjects, bytes);
  const bool verified =
      std::equal(received.begin(), received.end(), reinterpret_cast<const std::byte*>(sent.data()));
  std::printf("what came back is %s what was sent\n", verified ? "exactly" : "NOT");
  if (!arguments.json.empty()) write_json(arguments.json, subjects, bytes, command);
  return verified ? 0 : 1;
}

}  // namespace
}  // namespace cumulus::bench

int main(int argc, char** argv) {
  CLI::App app{"Measures transfers over several connections to a daemon against plain sockets, in turns.",
               "cumulus_streams_bench"};
  cumulus::bench::Arguments arguments;
  app.add_option("--tcp", arguments.tcp, "Where the daemon listens: 127.0.0.1:PORT")->required();
  app.add_option("--unix", arguments.local, "and: unix:PATH")->required();
  app.add_option("--size", arguments.mebibytes, "MiB a transfer")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--rounds", arguments.rounds, "Rounds that count")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--json", arguments.json, "Write the rows there too")->type_name("FILE");
  CLI11_PARSE(app, argc, argv);
  std::string command = "cumulus_streams_bench";
  for (int i = 1; i < argc; ++i) command += std::string(" ") + argv[i];
  try {
    return cumulus::bench::measure(arguments, command);
  } catch (const std::exception& error) {
    std::cerr << "cumulus_streams_bench: " << error.what() << "\n";
    return 1;
  }
}
