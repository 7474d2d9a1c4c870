#include <cumulus/client.h>
#include <cumulus/sampling.h>

#include <iostream>

// Nothing listens here: what is shown is that the installed library compiles, links and runs.
int main() {
  const auto client =
      cumulus::Client::connect("unix:/nonexistent", {.connect_timeout = absl::Milliseconds(200)});
  std::cout << client.status() << '\n';
  return absl::IsUnavailable(client.status()) ? 0 : 1;
}
