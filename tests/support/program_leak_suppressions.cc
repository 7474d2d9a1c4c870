// What LeakSanitizer is not to report of the programs that tests start.

extern "C" const char* __lsan_default_suppressions();

extern "C" const char* __lsan_default_suppressions() {
  // A thread of gRPC that lives as long as the program leaves its OpenSSL error state (904 bytes) behind,
  // because OpenSSL's own clean-up at exit deletes the key that would free it.
  return "leak:libcrypto.so\n";
}

// Tests compare the programs' errors word for word.
extern "C" const char* __lsan_default_options();

extern "C" const char* __lsan_default_options() { return "print_suppressions=0"; }
