#include <cumulus/sampling.h>
#include <cumulus/table_file.h>

#include <cstdio>

// Opens a table, draws from it, and refuses a file that is none.
int main(int count, char** arguments) {
  namespace sampling = cumulus::sampling;
  const sampling::OpenedTable refused = sampling::open_table(arguments[0]);  // this program
  std::printf("%s\n", refused.what());
  if (refused) return 1;
  if (count < 2) return 0;
  const sampling::OpenedTable sky = sampling::open_table(arguments[1]);
  if (!sky) {
    std::fprintf(stderr, "%s: %s\n", arguments[1], sky.what());
    return 1;
  }
  const sampling::Sample drawn = sampling::sample(sky.view, 0x12345678u, 0x9ABCDEF0u);
  return drawn.pdf > 0 && sampling::pdf(sky.view, drawn.u, drawn.v) > 0 ? 0 : 1;
}
