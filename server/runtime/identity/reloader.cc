#include "server/runtime/identity/reloader.h"

#include <spdlog/spdlog.h>

#include <exception>
#include <utility>

namespace cumulus::server {

bool Reloader::Mark::operator==(const Mark& other) const {
  return device == other.device && inode == other.inode && size == other.size &&
         modified.tv_sec == other.modified.tv_sec && modified.tv_nsec == other.modified.tv_nsec;
}

std::vector<Reloader::Mark> Reloader::marks_of(const Subject& subject) {
  std::vector<Mark> marks;
  for (const std::string& file : subject.files) {
    struct stat status {};
    Mark mark;
    if (!file.empty() && ::stat(file.c_str(), &status) == 0)
      mark = {status.st_dev, status.st_ino, status.st_size, status.st_mtim};
    marks.push_back(mark);
  }
  return marks;
}

Reloader::Reloader(std::vector<Subject> subjects, absl::Duration interval) : interval_(interval) {
  for (Subject& subject : subjects) {
    std::vector<Mark> marks = marks_of(subject);
    watched_.push_back({std::move(subject), std::move(marks)});
  }
  thread_ = std::thread([this] { run(); });
}

Reloader::~Reloader() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Reloader::reload(Watched& watched) {
  // Before the reading: what changes while it reads is noticed the next time.
  watched.marks = marks_of(watched.subject);
  absl::Status status;
  try {
    status = watched.subject.reload();
  } catch (const std::exception& problem) {  // no memory, no descriptor
    status = absl::InternalError(problem.what());
  }
  if (status.ok()) {
    spdlog::info("{}: read anew", watched.subject.what);
  } else {
    spdlog::warn("{}: {}; what was read before is used still", watched.subject.what,
                 std::string(status.message()));
  }
}

void Reloader::reload_all() {
  const std::lock_guard lock(mutex_);
  for (Watched& watched : watched_) reload(watched);
}

void Reloader::run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, absl::ToChronoNanoseconds(interval_), [this] { return stopping_; })) {
    for (Watched& watched : watched_) {
      if (!(marks_of(watched.subject) == watched.marks)) reload(watched);
    }
  }
}

}  // namespace cumulus::server
