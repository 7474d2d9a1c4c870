// What LeakSanitizer is not to report of the test programs: leaks of libraries that no line of ours can mend.

extern "C" const char* __lsan_default_suppressions();

extern "C" const char* __lsan_default_suppressions() {
  // c-ares 1.18.1 (Debian 12) keeps ten bytes each time it resolves "localhost", a name that only tests of
  // certificates give it: https://github.com/c-ares/c-ares/issues/439.
  return "leak:libcares.so\n"
         // libpng leaves OpenImageIO's read callback by longjmp when a file ends early, and a string stays
         // behind.
         "leak:ImageInput::geterror\n";
}
