// cumulus_device_sharing_bench: what it takes until a program's own GPU work has read a buffer of a server on
// the same GPU, by importing it, beside downloading it; and likewise the other way. The server is a process
// of its own, started with --shared-device-memory. All take turns in one run. Exits with 1 where what was
// imported is not what was sent.
#include "cumulus/device_sharing.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/service/gpu_reader.h"
#include "bench/service/turns.h"
#include "cumulus/client.h"

namespace cumulus::bench {
namespace {

int measure(const std::string& server, const TransferArguments& arguments) {
  const std::string gpu = use_first_gpu();
  const std::vector<std::uint8_t> sent = random_bytes(arguments.bytes());
  Client client = value_or_throw(Client::connect(server), "connecting");
  const Session session = value_or_throw(client.create_session(), "making a session");
  const Buffer buffer = value_or_throw(session.upload(ArrayView(sent)), "uploading");
  const GpuReader reader(sent.size());
  std::optional<DeviceArray> imported;
  std::optional<Array> downloaded;
  std::optional<Buffer> uploaded;
  std::optional<DeviceArray> source;
  source = value_or_throw(allocate_device_array(session, buffer.type(), buffer.shape()), "allocating");
  std::vector<Subject> subjects;
  subjects.push_back({.name = "import",
                      .run = [&] { imported = value_or_throw(import_buffer(buffer), "importing"); },
                      .prepare = [&] { imported.reset(); }});
  subjects.push_back({.name = "first use",
                      .run = [&] { reader.read(imported->data()); },
                      .prepare =
                          [&] {
                            imported.reset();
                            imported = value_or_throw(import_buffer(buffer), "importing");
                          }});
  subjects.push_back({.name = "import and first use",
                      .run =
                          [&] {
                            imported = value_or_throw(import_buffer(buffer), "importing");
                            reader.read(imported->data());
                          },
                      .prepare = [&] { imported.reset(); }});
  subjects.push_back({.name = "end of an import",
                      .run = [&] { imported.reset(); },
                      .prepare =
                          [&] {
                            if (!imported) imported = value_or_throw(import_buffer(buffer), "importing");
                          }});
  subjects.push_back({.name = "download",
                      .run = [&] { downloaded = value_or_throw(session.download(buffer), "downloading"); },
                      .prepare = [&] { downloaded.reset(); }});
  subjects.push_back(
      {.name = "upload of a device array",
       .run = [&] { uploaded = value_or_throw(upload_device_array(session, *source), "uploading"); },
       .prepare = [&] { uploaded.reset(); }});
  subjects.push_back({.name = "upload",
                      .run = [&] { uploaded = value_or_throw(session.upload(ArrayView(sent)), "uploading"); },
                      .prepare = [&] { uploaded.reset(); }});
  take_turns(subjects, arguments.rounds);
  std::vector<std::string> rows;
  for (const Subject& subject : subjects) {
    rows.push_back(json_field("name", subject.name) + ", " +
                   json_field("rounds", static_cast<double>(subject.seconds.size())) + ", " +
                   json_field("median_seconds", subject.median_seconds()) + ", " +
                   json_field("median_cpu_seconds", subject.median_cpu_seconds()));
    std::printf("%-26s %9.3f ms\n", subject.name.c_str(), subject.median_seconds() * 1e3);
  }
  write_rows(arguments, json_field("device", "cuda: " + gpu), rows);
  imported = value_or_throw(import_buffer(buffer), "importing");
  reader.read(imported->data());
  return came_back({reader.content()}, sent);
}

}  // namespace
}  // namespace cumulus::bench

int main(int argc, char** argv) {
  CLI::App app("What importing a buffer of a server on the same GPU takes, beside a download");
  std::string server = "127.0.0.1:50651";
  app.add_option("server", server, "HOST:PORT or unix:PATH of a cumulusd with --shared-device-memory");
  cumulus::bench::TransferArguments arguments;
  return cumulus::bench::run_program(app, argc, argv, arguments,
                                     [&] { return cumulus::bench::measure(server, arguments); });
}
