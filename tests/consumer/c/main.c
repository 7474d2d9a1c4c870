#include <cumulus/cumulus.h>
#include <stdio.h>

/* Nothing listens here: what is shown is that the installed library compiles, links and runs. */
int main(void) {
  cumulus_connect_options options = CUMULUS_CONNECT_OPTIONS;
  cumulus_status* status = cumulus_status_create();
  cumulus_connection* connection = NULL;
  cumulus_code code;
  options.address = "unix:/nonexistent";
  options.connect_timeout_seconds = 0.2;
  code = cumulus_connect(&options, &connection, status);
  printf("Cumulus %s: %s\n", cumulus_version(), cumulus_status_message(status));
  cumulus_status_release(status);
  return code == CUMULUS_UNAVAILABLE && connection == NULL ? 0 : 1;
}
