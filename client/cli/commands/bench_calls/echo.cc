#include "cli/commands/bench_calls/echo.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "cli/commands/bench_calls/self.h"
#include "cumulus/v1/operations.grpc.pb.h"
#include "cumulus/v1/sampling_table.pb.h"

namespace cumulus::cli {
namespace {

constexpr const char* kWhat = "the bare gRPC server that is compared with";

void add_timings(v1::OperationResult& response) {
  v1::Timings& timings = *response.mutable_timings();
  for (auto* part : {timings.mutable_queue(), timings.mutable_input(), timings.mutable_compute(),
                     timings.mutable_output()})
    part->set_nanos(1000);
  timings.set_device("cpu");
}

class Echo final : public v1::Operations::CallbackService {
 public:
  explicit Echo(std::int64_t table_bytes) : table_(static_cast<std::size_t>(table_bytes), '\0') {}

  grpc::ServerUnaryReactor* FilterBox(grpc::CallbackServerContext* context,
                                      const v1::FilterBoxRequest* request,
                                      v1::OperationResult* response) override {
    v1::NamedArray& array = *response->add_arrays();
    array.set_name("image");
    *array.mutable_inline_array() = request->image().inline_array();
    return finish(*context, *response);
  }
  grpc::ServerUnaryReactor* BuildSamplingTable(grpc::CallbackServerContext* context,
                                               const v1::BuildSamplingTableRequest* /*request*/,
                                               v1::OperationResult* response) override {
    v1::NamedArray& array = *response->add_arrays();
    array.set_name("table");
    v1::InlineArray& table = *array.mutable_inline_array();
    table.mutable_spec()->set_element_type(v1::UINT8);
    table.mutable_spec()->add_shape(static_cast<std::int64_t>(table_.size()));
    table.set_data(table_);
    return finish(*context, *response);
  }

 private:
  static grpc::ServerUnaryReactor* finish(grpc::CallbackServerContext& context,
                                          v1::OperationResult& response) {
    add_timings(response);
    grpc::ServerUnaryReactor* reactor = context.DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  const std::string table_;
};

absl::Status failed(const std::string& what) {
  return absl::InternalError(absl::StrCat(kWhat, ": ", what, ": ", std::strerror(errno)));
}

}  // namespace

absl::Status serve_echo(const std::string& address, std::int64_t table_bytes) {
  Echo echo(table_bytes);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&echo);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return absl::InternalError(absl::StrCat("cannot serve at ", address));
  std::printf("%d\n", port);
  std::fflush(stdout);
  std::array<char, 64> ignored{};
  while (::read(STDIN_FILENO, ignored.data(), ignored.size()) > 0) continue;
  server->Shutdown();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<EchoServer>> EchoServer::start(const std::string& target,
                                                              std::int64_t table_bytes) {
  std::unique_ptr<EchoServer> echo(new EchoServer);
  std::string address = "127.0.0.1:0";
  if (target.rfind("unix:", 0) == 0) {
    std::string folder = (std::filesystem::temp_directory_path() / "cumulus-bench-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) return failed(folder);
    echo->folder_ = folder;
    address = absl::StrCat("unix:", folder, "/socket");
  }
  std::array<int, 2> input{};
  std::array<int, 2> output{};
  if (::pipe2(input.data(), O_CLOEXEC) != 0) return failed("pipe");
  echo->input_ = input[1];
  if (::pipe2(output.data(), O_CLOEXEC) != 0) return failed("pipe");
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  const absl::StatusOr<pid_t> process =
      spawn_self({"bench-echo", address, absl::StrCat(table_bytes)}, &actions, kWhat);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(input[0]);
  ::close(output[1]);
  std::array<char, 16> line{};
  const ssize_t count = process.ok() ? ::read(output[0], line.data(), line.size() - 1) : 0;
  ::close(output[0]);
  if (!process.ok()) return process.status();
  echo->process_ = *process;
  if (count <= 0) return absl::InternalError(absl::StrCat(kWhat, " did not start"));
  echo->target_ = echo->folder_.empty() ? absl::StrCat("127.0.0.1:", std::atoi(line.data())) : address;
  return echo;
}

EchoServer::~EchoServer() {
  if (input_ >= 0) ::close(input_);
  if (process_ > 0) ::waitpid(process_, nullptr, 0);
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

}  // namespace cumulus::cli
