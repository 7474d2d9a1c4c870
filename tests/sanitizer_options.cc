/// What every test program asks of AddressSanitizer, which looks for this function by its name.

extern "C" const char* __asan_default_options();  // NOLINT(bugprone-reserved-identifier)

/// Memory that cannot be had is told as it is without the sanitizer, by a null pointer from `new (std::nothrow)`:
/// otherwise tests that ask for petabytes end there.
const char* __asan_default_options() {  // NOLINT(bugprone-reserved-identifier)
  return "allocator_may_return_null=1";
}
