// Clients that behave badly at random, for chaos_test: `chaos_clients ADDRESS CLIENTS SEED` runs until
// SIGTERM, prints how its calls ended, and exits with 1 where an answer was wrong or an error was none of the
// client's making.
#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cumulus/v1/operations.grpc.pb.h"
#include "cumulus/v1/sessions.grpc.pb.h"
#include "cumulus/v1/transfer.grpc.pb.h"
#include "proto/checksums.h"
#include "tests/support/hostile_files.h"
#include "tests/support/png_files.h"

namespace cumulus::testing {
namespace {

using std::chrono::milliseconds;

std::atomic<bool> stopping = false;

/// How calls ended, of all clients.
class Tally {
 public:
  void count(const std::string& action, const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    ++ends_[action + " " + std::to_string(status.error_code())];
    switch (status.error_code()) {
      case grpc::StatusCode::INTERNAL:
      case grpc::StatusCode::UNKNOWN:
      case grpc::StatusCode::UNIMPLEMENTED:
      case grpc::StatusCode::DATA_LOSS:
        wrong_.push_back(action + ": " + status.error_message());
        break;
      default:
        break;
    }
  }
  void wrong(const std::string& what) {
    const std::lock_guard lock(mutex_);
    wrong_.push_back(what);
  }
  /// False where anything was wrong.
  bool print() {
    const std::lock_guard lock(mutex_);
    for (const auto& [end, count] : ends_) std::printf("%s: %d\n", end.c_str(), count);
    for (const std::string& what : wrong_) std::printf("WRONG %s\n", what.c_str());
    return wrong_.empty();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> ends_;
  std::vector<std::string> wrong_;
};

class Client {
 public:
  Client(const std::string& address, unsigned seed, Tally& tally)
      : address_(address), random_(seed), tally_(tally) {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), own);
    operations_ = v1::Operations::NewStub(channel);
    sessions_ = v1::Sessions::NewStub(channel);
    transfer_ = v1::BufferTransfer::NewStub(channel);
  }

  void run() {
    using Action = void (Client::*)();
    constexpr Action kActions[] = {&Client::compute,      &Client::compute,      &Client::go_round,
                                   &Client::go_round,     &Client::give_up,      &Client::give_up,
                                   &Client::break_upload, &Client::break_upload, &Client::send_image,
                                   &Client::send_image,   &Client::read_slowly,  &Client::talk_nonsense,
                                   &Client::renew_session};
    renew_session();
    while (!stopping) {
      (this->*kActions[below(std::size(kActions))])();
      std::this_thread::sleep_for(milliseconds(below(20)));
    }
  }

 private:
  unsigned below(std::size_t count) { return static_cast<unsigned>(random_() % count); }
  bool chance(unsigned of) { return below(of) == 0; }
  std::string random_bytes(std::size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }
  static void set_limit(grpc::ClientContext& context, milliseconds limit) {
    context.set_deadline(std::chrono::system_clock::now() + limit);
  }

  /// Most sessions are left to their leases.
  void renew_session() {
    if (!session_.empty() && chance(2)) {
      grpc::ClientContext context;
      set_limit(context, std::chrono::seconds(5));
      v1::DeleteSessionRequest request;
      request.set_name(session_);
      google::protobuf::Empty nothing;
      tally_.count("DeleteSession", sessions_->DeleteSession(&context, request, &nothing));
    }
    char id[40];
    std::snprintf(id, sizeof(id), "%08x-0000-4000-8000-%04x%08x", static_cast<unsigned>(random_()),
                  static_cast<unsigned>(::getpid()) & 0xFFFFU, static_cast<unsigned>(random_()));
    v1::CreateSessionRequest request;
    request.set_session_id(id);
    request.mutable_ttl()->set_seconds(2);
    v1::Session session;
    grpc::ClientContext context;
    set_limit(context, std::chrono::seconds(5));
    const grpc::Status status = sessions_->CreateSession(&context, request, &session);
    tally_.count("CreateSession", status);
    session_ = status.ok() ? session.name() : std::string();
  }

  /// A table whose last sum is known.
  void compute() {
    const std::int64_t side = 1 + below(200);
    v1::BuildSummedAreaTableRequest request;
    auto& image = *request.mutable_image()->mutable_inline_array();
    image.mutable_spec()->set_element_type(v1::UINT8);
    for (int axis = 0; axis < 2; ++axis) image.mutable_spec()->add_shape(side);
    image.set_data(random_bytes(static_cast<std::size_t>(side * side)));
    request.set_accumulator(v1::UINT64);
    request.mutable_options()->mutable_output()->mutable_inline_array();
    if (chance(4)) request.mutable_options()->set_priority(v1::BATCH);
    grpc::ClientContext context;
    set_limit(context, std::chrono::seconds(20));
    v1::OperationResult result;
    const grpc::Status status = operations_->BuildSummedAreaTable(&context, request, &result);
    tally_.count("compute", status);
    if (!status.ok()) return;
    const std::string& sums = result.arrays(0).inline_array().data();
    std::uint64_t last = 0;
    if (sums.size() >= sizeof(last))
      std::memcpy(&last, sums.data() + sums.size() - sizeof(last), sizeof(last));
    const std::string& bytes = image.data();
    const auto sum =
        std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0},
                        [](std::uint64_t all, char b) { return all + static_cast<unsigned char>(b); });
    if (last != sum) tally_.wrong("a sum");
  }

  v1::WriteBufferRequest chunk(const std::string& data, std::size_t offset, std::size_t size) {
    v1::WriteBufferRequest message;
    if (offset == 0) {
      auto& spec = *message.mutable_spec();
      spec.set_session(session_);
      spec.mutable_spec()->set_element_type(v1::UINT8);
      spec.mutable_spec()->add_shape(static_cast<std::int64_t>(data.size()));
    }
    message.set_write_offset(static_cast<std::int64_t>(offset));
    message.set_data(data.substr(offset, size));
    message.set_crc32c(
        crc32c({reinterpret_cast<const std::byte*>(message.data().data()), message.data().size()}));
    message.set_finish_write(offset + size >= data.size());
    return message;
  }

  /// Its name, or nothing.
  std::string upload(const std::string& data) {
    constexpr std::size_t kChunk = std::size_t{256} << 10;
    grpc::ClientContext context;
    set_limit(context, std::chrono::seconds(20));
    v1::Buffer buffer;
    const auto writer = transfer_->WriteBuffer(&context, &buffer);
    for (std::size_t offset = 0; offset < data.size(); offset += kChunk) {
      if (!writer->Write(chunk(data, offset, kChunk))) break;
    }
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    tally_.count("upload", status);
    return status.ok() ? buffer.name() : std::string();
  }

  void go_round() {
    const std::string data = random_bytes(1 + below(std::size_t{400} << 10));
    const std::string name = upload(data);
    if (name.empty()) return;
    grpc::ClientContext context;
    set_limit(context, std::chrono::seconds(20));
    v1::ReadBufferRequest request;
    request.set_name(name);
    const auto reader = transfer_->ReadBuffer(&context, request);
    std::string back;
    for (v1::ReadBufferResponse part; reader->Read(&part);) back += part.data();
    const grpc::Status status = reader->Finish();
    tally_.count("download", status);
    if (status.ok() && back != data) tally_.wrong("bytes that went round");
    if (chance(2)) return;
    v1::DeleteBufferRequest remove;
    remove.set_name(name);
    google::protobuf::Empty nothing;
    grpc::ClientContext remove_context;
    tally_.count("DeleteBuffer", sessions_->DeleteBuffer(&remove_context, remove, &nothing));
  }

  /// A call of a good while, cancelled or too late.
  void give_up() {
    v1::ApplyRecursiveFilterRequest request;
    auto& image = *request.mutable_image()->mutable_inline_array();
    image.mutable_spec()->set_element_type(v1::FLOAT32);
    for (int axis = 0; axis < 2; ++axis) image.mutable_spec()->add_shape(400);
    image.set_data(std::string(sizeof(float) * 400 * 400, '\0'));
    request.mutable_x()->mutable_gaussian()->set_sigma(5);
    request.mutable_y()->mutable_gaussian()->set_sigma(5);
    request.mutable_options()->mutable_output()->mutable_inline_array();
    grpc::ClientContext context;
    set_limit(context, chance(2) ? milliseconds(1 + below(30)) : std::chrono::seconds(20));
    v1::OperationResult result;
    std::promise<grpc::Status> end;
    operations_->async()->ApplyRecursiveFilter(&context, &request, &result,
                                               [&](const grpc::Status& status) { end.set_value(status); });
    std::future<grpc::Status> ended = end.get_future();
    ended.wait_for(milliseconds(below(40)));
    context.TryCancel();
    tally_.count("give up", ended.get());
  }

  void break_upload() {
    const std::string data = random_bytes(1 + below(std::size_t{300} << 10));
    constexpr std::size_t kChunk = 10000;
    grpc::ClientContext context;
    set_limit(context, std::chrono::seconds(20));
    v1::Buffer buffer;
    const auto writer = transfer_->WriteBuffer(&context, &buffer);
    v1::WriteBufferRequest first = chunk(data, 0, kChunk);
    const unsigned way = below(4);
    if (way == 0) first.set_crc32c(first.crc32c() + 1);
    if (way == 1) first.set_write_offset(7);
    if (way == 2) first.mutable_spec()->mutable_spec()->set_shape(0, 32 << 20);  // and only so much comes
    first.set_finish_write(way < 3);
    writer->Write(first);
    if (way == 3 && data.size() > kChunk) writer->Write(chunk(data, kChunk, kChunk / 2));
    if (chance(2)) {
      std::this_thread::sleep_for(milliseconds(below(50)));
      context.TryCancel();
    }
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    tally_.count("break upload", status);
    if (status.ok() && way < 3) tally_.wrong("a broken upload was taken");
  }

  /// Small noise.
  std::string picture() {
    const std::uint32_t side = 1 + below(60);
    std::string rows;
    for (std::uint32_t row = 0; row < side; ++row) rows += '\0' + random_bytes(side);
    return png_file(side, side, rows);
  }

  void send_image() {
    std::string file = picture();
    const unsigned way = below(4);
    if (way == 0) file = exr_with_a_huge_attribute();
    if (way == 1) file.resize(below(file.size()));
    if (way == 2) {
      char& byte = file[below(file.size())];
      byte = static_cast<char>(byte ^ (1 << below(8)));
    }
    v1::BuildSummedAreaTableRequest request;
    request.mutable_image()->mutable_encoded()->set_data(file);
    request.set_accumulator(v1::UINT64);
    request.mutable_options()->mutable_output()->mutable_inline_array();
    grpc::ClientContext context;
    set_limit(context, chance(3) ? milliseconds(1 + below(20)) : std::chrono::seconds(20));
    v1::OperationResult result;
    const grpc::Status status = operations_->BuildSummedAreaTable(&context, request, &result);
    tally_.count("image", status);
    if (status.error_code() == grpc::StatusCode::INVALID_ARGUMENT && way == 3)
      tally_.wrong("a good image is refused");
  }

  void read_slowly() {
    const std::string name = upload(std::string(std::size_t{2} << 20, 'x'));
    if (name.empty()) return;
    grpc::ClientContext context;
    set_limit(context, std::chrono::seconds(20));
    v1::ReadBufferRequest request;
    request.set_name(name);
    request.set_chunk_bytes(64 << 10);
    const auto reader = transfer_->ReadBuffer(&context, request);
    v1::ReadBufferResponse part;
    while (!stopping && reader->Read(&part) && !chance(20))
      std::this_thread::sleep_for(milliseconds(below(100)));
    context.TryCancel();
    tally_.count("read slowly", reader->Finish());
  }

  /// Bytes that are no HTTP/2, or end early.
  void talk_nonsense() {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address_.substr(address_.rfind(':') + 1))));
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0) {
      std::string words =
          "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\4\0\0\0\0\0", 9) + random_bytes(300);
      words.resize(below(words.size()));
      (void)::send(socket, words.data(), words.size(), MSG_NOSIGNAL);
      std::this_thread::sleep_for(milliseconds(below(50)));
      const linger at_once{1, chance(2) ? 0 : 1};  // or by a reset
      ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    }
    ::close(socket);
  }

  const std::string address_;
  std::minstd_rand random_;
  Tally& tally_;
  std::unique_ptr<v1::Operations::Stub> operations_;
  std::unique_ptr<v1::Sessions::Stub> sessions_;
  std::unique_ptr<v1::BufferTransfer::Stub> transfer_;
  std::string session_;
};

int run(const std::string& address, unsigned clients, unsigned seed) {
  Tally tally;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < clients; ++i)
    threads.emplace_back([&, i] { Client(address, seed * 1000 + i + 1, tally).run(); });
  for (std::thread& thread : threads) thread.join();
  return tally.print() ? 0 : 1;
}

}  // namespace
}  // namespace cumulus::testing

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "chaos_clients ADDRESS CLIENTS SEED\n");
    return 2;
  }
  std::signal(SIGTERM, [](int) { cumulus::testing::stopping = true; });
  return cumulus::testing::run(argv[1], static_cast<unsigned>(std::atoi(argv[2])),
                               static_cast<unsigned>(std::atoi(argv[3])));
}
