#include "server/runtime/identity/reloader.h"

#include <spdlog/spdlog.h>

#include <exception>
#include <utility>

namespace cumulus::server {

bool WatchedFiles::Mark::operator==(const Mark& other) const {
  return device == other.device && inode == other.inode && size == other.size &&
         modified.tv_sec == other.modified.tv_sec && modified.tv_nsec == other.modified.tv_nsec;
}

std::vector<WatchedFiles::Mark> WatchedFiles::marks() const {
  std::vector<Mark> marks;
  for (const std::string& name : names_) {
    struct stat status {};
    Mark mark;
    if (!name.empty() && ::stat(name.c_str(), &status) == 0)
      mark = {status.st_dev, status.st_ino, status.st_size, status.st_mtim};
    marks.push_back(mark);
  }
  return marks;
}

Reloader::Reloader(std::vector<Subject> subjects, absl::Duration interval)
    : interval_(interval), subjects_(std::move(subjects)), thread_([this] { run(); }) {}

Reloader::~Reloader() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Reloader::reload(Subject& subject) {
  // Before the reading: what changes while it reads is noticed the next time.
  subject.files.mark();
  absl::Status status;
  try {
    status = subject.reload();
  } catch (const std::exception& problem) {  // no memory, no descriptor
    status = absl::InternalError(problem.what());
  }
  subject.usable = status.ok();
  if (status.ok()) {
    spdlog::info("{}: read anew", subject.what);
  } else {
    spdlog::warn("{}: {}; what was read before is used still", subject.what, std::string(status.message()));
  }
}

void Reloader::reload_all() {
  const std::lock_guard lock(mutex_);
  for (Subject& subject : subjects_) reload(subject);
}

std::vector<std::pair<std::string, bool>> Reloader::usable() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, bool>> each;
  for (const Subject& subject : subjects_) each.emplace_back(subject.what, subject.usable);
  return each;
}

void Reloader::run() {
  std::unique_lock lock(mutex_);
  if (subjects_.empty()) return;
  while (!wake_.wait_for(lock, absl::ToChronoNanoseconds(interval_), [this] { return stopping_; })) {
    for (Subject& subject : subjects_) {
      if (subject.files.changed()) reload(subject);
    }
  }
}

}  // namespace cumulus::server
