#include "server/runtime/decode/worker.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cumulus/decoding/v1/decoding.pb.h"

namespace cumulus::server {
namespace {

using decoding::v1::Answer;
using decoding::v1::Failure;

std::size_t size_of(const Descriptor& file) {
  // Not by fstat, which is a look-up by name in some libraries and refused.
  const off_t end = ::lseek(file.number(), 0, SEEK_END);
  return end > 0 ? static_cast<std::size_t>(end) : 0;
}

/// Readers catch std::bad_alloc, and say that the file is damaged.
bool ran_out_of_memory = false;

[[noreturn]] void note_lack_of_memory() {
  ran_out_of_memory = true;
  throw std::bad_alloc();
}

void fail(Answer& answer, Failure::Kind kind, std::string_view text) {
  constexpr std::size_t kMaxText = 1024;
  answer.mutable_failure()->set_kind(ran_out_of_memory ? Failure::OUT_OF_MEMORY : kind);
  answer.mutable_failure()->set_text(std::string(text.substr(0, kMaxText)));
}

/// Runs `step`; what it throws becomes an answer.
template <class Step>
Answer attempt(const Step& step) {
  Answer answer;
  try {
    step(answer);
  } catch (const std::bad_alloc&) {
    fail(answer, Failure::OUT_OF_MEMORY, "");
  } catch (const std::length_error&) {  // a container that the address space could not hold
    fail(answer, Failure::OUT_OF_MEMORY, "");
  } catch (const std::exception& error) {
    fail(answer, Failure::EXCEPTION, error.what());
  }
  return answer;
}

/// One image file, and the way from its header to its pixels.
class Image {
 public:
  Image(const images::ImageLibrary& library, const Descriptor& file)
      : library_(library), bytes_(size_of(file)), mapping_(file, bytes_, Mapping::Access::kRead) {}

  void open(const decoding::v1::Open& request, Answer& answer) {
    if (!library_.reads_from_memory(request.reader())) return fail(answer, Failure::UNSUPPORTED, "");
    auto [file, error] =
        library_.open_memory(request.reader(), {static_cast<const char*>(mapping_.data()), bytes_},
                             images::AlphaColours::kMultiplied);
    if (file == nullptr) return fail(answer, Failure::DAMAGED, error);
    file_ = std::move(file);
    if (request.subimage() > 0 && !library_.select_picture(*file_, request.subimage()))
      return fail(answer, Failure::NO_SUBIMAGE, "");
    header_ = library_.header(*file_);
    describe(*answer.mutable_opened());
  }

  void read(const decoding::v1::Read& request, const Descriptor& target, Answer& answer) {
    const Mapping pixels(target, size_of(target), Mapping::Access::kWrite);
    const auto [lowest, highest] = std::minmax_element(request.channels().begin(), request.channels().end());
    first_ = *lowest;
    const int end = *highest + 1;
    const images::Samples samples = request.bytes() ? images::Samples::kUint8 : images::Samples::kFloat32;
    bool in_order = end - first_ == request.channels_size();
    for (int i = 0; i < request.channels_size(); ++i)
      in_order = in_order && request.channels(i) == first_ + i;
    if (in_order) return done_or(library_.read(*file_, first_, end, samples, pixels.data()), answer);

    const std::size_t sample = request.bytes() ? 1 : sizeof(float);
    const std::size_t pixel = static_cast<std::size_t>(end - first_) * sample;
    const std::size_t count =
        static_cast<std::size_t>(header_.width) * static_cast<std::size_t>(header_.height);
    const std::unique_ptr<std::byte[]> range(new std::byte[count * pixel]);
    done_or(library_.read(*file_, first_, end, samples, range.get()), answer);
    if (answer.has_failure()) return;
    auto* out = static_cast<std::byte*>(pixels.data());
    for (std::size_t i = 0; i < count; ++i) {
      for (const int channel : request.channels()) {
        std::memcpy(out, range.get() + i * pixel + static_cast<std::size_t>(channel - first_) * sample,
                    sample);
        out += sample;
      }
    }
  }

 private:
  void describe(decoding::v1::Opened& opened) const {
    opened.set_width(header_.width);
    opened.set_height(header_.height);
    opened.set_depth(header_.depth);
    opened.set_channels(header_.channels);
    opened.set_deep(header_.deep);
    opened.set_bytes(header_.samples == images::Samples::kUint8);
    opened.set_file_bytes(header_.bytes);
    std::size_t room = Channel::kMaxMessageBytes / 2;
    for (const std::string& name : header_.channel_names) {
      constexpr std::size_t kOverhead = 8;  // tag and length
      if (name.size() + kOverhead > room) break;
      room -= name.size() + kOverhead;
      opened.add_channel_names(name);
    }
  }

  static void done_or(const std::string& problem, Answer& answer) {
    if (problem.empty()) {
      answer.mutable_done();
    } else {
      fail(answer, Failure::DAMAGED, problem);
    }
  }

  const images::ImageLibrary& library_;
  const std::size_t bytes_;
  const Mapping mapping_;
  images::ImageFile file_;  // reads from the mapping
  images::Header header_;
  int first_ = 0;
};

}  // namespace

void run_decode_worker(const images::ImageLibrary& library, const Channel& daemon) {
  std::set_new_handler(note_lack_of_memory);
  Descriptor file;
  decoding::v1::Open open;
  if (!daemon.receive(open, &file) || !file) ::_exit(0);  // nobody wants it any more
  std::optional<Image> image;
  const Answer opened = attempt([&](Answer& answer) { image.emplace(library, file).open(open, answer); });
  decoding::v1::Read read;
  Descriptor pixels;
  if (!daemon.send(opened) || !opened.has_opened() || !daemon.receive(read, &pixels) || !pixels) ::_exit(0);
  daemon.send(attempt([&](Answer& answer) { image->read(read, pixels, answer); }));
  ::_exit(0);
}

}  // namespace cumulus::server
