#include "server/runtime/decode/system_calls.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <vector>

namespace cumulus::server {
namespace {

#if defined(__x86_64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "name this architecture for the filter of system calls"
#endif

// What readers, the standard library and the channel need.
constexpr int kAllowed[] = {
    SYS_read,           SYS_write,        SYS_close,           SYS_lseek,
    SYS_fstat,          SYS_munmap,       SYS_mremap,          SYS_brk,
    SYS_madvise,        SYS_futex,        SYS_recvmsg,         SYS_sendmsg,
    SYS_clock_gettime,  SYS_gettimeofday, SYS_clock_nanosleep, SYS_getrandom,
    SYS_exit,           SYS_exit_group,   SYS_rt_sigreturn,    SYS_rt_sigaction,
    SYS_rt_sigprocmask, SYS_sigaltstack,  SYS_sched_yield,     SYS_sched_getaffinity,
    SYS_sysinfo,        SYS_getpid,       SYS_gettid,          SYS_set_robust_list,
    SYS_rseq,
};
// Readers look for files beside an image, and libraries for settings: they find none.
constexpr int kRefused[] = {
    SYS_openat, SYS_newfstatat, SYS_statx, SYS_readlinkat, SYS_faccessat, SYS_getcwd, SYS_ioctl, SYS_uname,
#if defined(__x86_64__)
    SYS_open,   SYS_stat,       SYS_lstat, SYS_readlink,   SYS_access,
#endif
};
constexpr int kMaps[] = {SYS_mmap, SYS_mprotect};

using Program = std::vector<sock_filter>;

sock_filter load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset));
}
sock_filter answer(unsigned action) { return BPF_STMT(BPF_RET | BPF_K, action); }

/// Answers `action` where what was loaded is `value`, else goes on.
void if_equal(Program& program, unsigned value, unsigned action) {
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
  program.push_back(answer(action));
}

Program make_filter() {
  Program program = {load(offsetof(seccomp_data, arch)),
                     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
                     answer(SECCOMP_RET_KILL_PROCESS), load(offsetof(seccomp_data, nr))};
  for (const int call : kAllowed) if_equal(program, static_cast<unsigned>(call), SECCOMP_RET_ALLOW);
  for (const int call : kRefused) if_equal(program, static_cast<unsigned>(call), SECCOMP_RET_ERRNO | EACCES);
  for (const int call : kMaps) {  // their third argument is the protection; nothing new is executable
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 4));
    program.push_back(load(offsetof(seccomp_data, args[2])));
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1));
    program.push_back(answer(SECCOMP_RET_KILL_PROCESS));
    program.push_back(answer(SECCOMP_RET_ALLOW));
  }
  program.push_back(answer(SECCOMP_RET_KILL_PROCESS));
  return program;
}

}  // namespace

bool confine_process() {
  Program filter = make_filter();
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace cumulus::server
