/*
 * What a plugin in C does with the client library, and what it is answered for mistakes.
 *   c_calls ADDRESS FOLDER [CA TOKEN_FILE]
 * Writes FOLDER/sky.cst and exits with 0; prints what was wrong, and exits with 1.
 */
#include <cumulus/channel.h>
#include <cumulus/cumulus.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define EXPECT(condition)                                             \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                     \
    }                                                                 \
  } while (0)

/* Of a call that has to succeed, says its message otherwise; the rest would only follow from that. */
static void succeed(cumulus_code code, const cumulus_status* status, const char* call) {
  if (code == CUMULUS_OK && cumulus_status_code(status) == CUMULUS_OK) return;
  fprintf(stderr, "%s: %d %s: %s\n", call, (int)code, cumulus_status_field(status),
          cumulus_status_message(status));
  exit(1);
}
#define SUCCEED(call) succeed(call, status, #call)

static int refused(cumulus_code code, cumulus_code wanted, const cumulus_status* status, const char* field) {
  const int as_wanted = code == wanted && cumulus_status_code(status) == wanted &&
                        strcmp(cumulus_status_field(status), field) == 0 &&
                        cumulus_status_message(status)[0] != '\0';
  if (!as_wanted) {
    fprintf(stderr, "answered %d, field '%s': %s\n", (int)code, cumulus_status_field(status),
            cumulus_status_message(status));
  }
  return as_wanted;
}

static cumulus_buffer* upload_floats(cumulus_connection* connection, const float* values, int64_t rows,
                                     int64_t columns) {
  int64_t shape[2];
  cumulus_array array;
  cumulus_buffer* buffer = NULL;
  cumulus_status* status = cumulus_status_create();
  shape[0] = rows;
  shape[1] = columns;
  array.type = CUMULUS_FLOAT32;
  array.rank = 2;
  array.shape = shape;
  array.data = values;
  array.size = (size_t)(rows * columns) * sizeof(float);
  SUCCEED(cumulus_upload(connection, &array, &buffer, status));
  cumulus_status_release(status);
  return buffer;
}

/* All of its elements, allocated here. */
static void* fetch(cumulus_connection* connection, const cumulus_buffer* buffer) {
  const size_t size = cumulus_buffer_size(buffer);
  void* data = malloc(size);
  cumulus_status* status = cumulus_status_create();
  SUCCEED(cumulus_download(connection, buffer, data, size, status));
  cumulus_status_release(status);
  return data;
}

static void check_arrays(cumulus_connection* connection) {
  const float values[6] = {1, 2, 3, 4, 5, 6};
  cumulus_buffer* buffer = upload_floats(connection, values, 2, 3);
  float* back = fetch(connection, buffer);
  EXPECT(cumulus_buffer_type(buffer) == CUMULUS_FLOAT32);
  EXPECT(cumulus_buffer_rank(buffer) == 2);
  EXPECT(cumulus_buffer_shape(buffer)[0] == 2 && cumulus_buffer_shape(buffer)[1] == 3);
  EXPECT(cumulus_buffer_size(buffer) == sizeof(values));
  EXPECT(memcmp(back, values, sizeof(values)) == 0);
  free(back);
  cumulus_buffer_release(buffer);
}

static void check_table(cumulus_connection* connection, const char* folder, cumulus_status* status) {
  const float sky[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  char path[4096];
  cumulus_buffer* weights = upload_floats(connection, sky, 2, 4);
  cumulus_buffer* table = NULL;
  SUCCEED(cumulus_build_sampling_table(connection, weights, CUMULUS_LAT_LONG, &table, status));
  EXPECT(cumulus_buffer_type(table) == CUMULUS_UINT8 && cumulus_buffer_rank(table) == 1);
  snprintf(path, sizeof(path), "%s/sky.cst", folder);
  SUCCEED(cumulus_save_sampling_table(connection, table, path, status));
  EXPECT(refused(cumulus_save_sampling_table(connection, weights, path, status), CUMULUS_INVALID_ARGUMENT,
                 status, "table"));
  snprintf(path, sizeof(path), "%s/no/such/folder.cst", folder);
  EXPECT(refused(cumulus_save_sampling_table(connection, table, path, status), CUMULUS_UNKNOWN, status, ""));
  cumulus_buffer_release(table);
  cumulus_buffer_release(weights);
}

static void check_images(cumulus_connection* connection, cumulus_status* status) {
  const float impulse[9] = {0, 0, 0, 0, 1, 0, 0, 0, 0};
  const cumulus_blur_options options = {1.0, CUMULUS_REPEAT, CUMULUS_REPEAT};
  cumulus_buffer* image = upload_floats(connection, impulse, 3, 3);
  cumulus_buffer* blurred = NULL;
  cumulus_buffer* sums = NULL;
  float* pixels = NULL;
  double* table = NULL;
  SUCCEED(cumulus_gaussian_blur(connection, image, &options, &blurred, status));
  SUCCEED(cumulus_build_summed_area_table(connection, blurred, &sums, status));
  pixels = fetch(connection, blurred);
  EXPECT(pixels[4] > pixels[0] && fabs((double)pixels[1] - (double)pixels[3]) < 1e-6);
  EXPECT(cumulus_buffer_type(sums) == CUMULUS_FLOAT64);
  table = fetch(connection, sums);
  EXPECT(fabs(table[8] - 1.0) < 1e-3); /* a blur of unit gain that wraps around keeps the sum */
  free(table);
  free(pixels);
  cumulus_buffer_release(sums);
  cumulus_buffer_release(blurred);
  cumulus_buffer_release(image);
}

static void check_tree(cumulus_connection* connection, cumulus_status* status) {
  const float points[8] = {0, 0, 1, 0, 0, 2, 5, 5};
  const float query[2] = {0.75F, 0};
  cumulus_buffer* cloud = upload_floats(connection, points, 4, 2);
  cumulus_buffer* queries = upload_floats(connection, query, 1, 2);
  cumulus_kd_tree* tree = NULL;
  cumulus_neighbors found;
  int64_t* indices = NULL;
  float* distances = NULL;
  SUCCEED(cumulus_build_kd_tree(connection, cloud, &tree, status));
  cumulus_buffer_release(cloud);
  SUCCEED(cumulus_find_nearest(connection, tree, queries, 2, &found, status));
  indices = fetch(connection, found.indices);
  distances = fetch(connection, found.distances);
  EXPECT(indices[0] == 1 && indices[1] == 0);
  EXPECT(distances[0] == 0.25F && distances[1] == 0.75F);
  free(distances);
  free(indices);
  cumulus_buffer_release(found.distances);
  cumulus_buffer_release(found.indices);
  EXPECT(cumulus_find_nearest(connection, tree, queries, 0, &found, status) == CUMULUS_INVALID_ARGUMENT);
  EXPECT(found.indices == NULL && found.distances == NULL);
  EXPECT(strstr(cumulus_status_field(status), "nearest") != NULL);
  cumulus_buffer_release(queries);
  cumulus_kd_tree_release(tree);
}

static void check_wrong_arrays(cumulus_connection* connection, cumulus_status* status) {
  const float values[6] = {1, 2, 3, 4, 5, 6};
  const int64_t shape[2] = {2, 4};
  const int64_t negative[2] = {-2, 3};
  cumulus_array array = {CUMULUS_FLOAT32, 2, NULL, NULL, 0};
  cumulus_buffer* buffer = (cumulus_buffer*)&array; /* to see that it becomes NULL */
  array.data = values;
  array.size = sizeof(values);
  EXPECT(refused(cumulus_upload(connection, &array, &buffer, status), CUMULUS_INVALID_ARGUMENT, status,
                 "array.shape"));
  EXPECT(buffer == NULL);
  array.shape = shape;
  EXPECT(refused(cumulus_upload(connection, &array, &buffer, status), CUMULUS_INVALID_ARGUMENT, status,
                 "array.size"));
  array.shape = negative;
  EXPECT(refused(cumulus_upload(connection, &array, &buffer, status), CUMULUS_INVALID_ARGUMENT, status,
                 "array.shape"));
  array.rank = 0;
  EXPECT(refused(cumulus_upload(connection, &array, &buffer, status), CUMULUS_INVALID_ARGUMENT, status,
                 "array.rank"));
  EXPECT(
      refused(cumulus_upload(NULL, &array, &buffer, status), CUMULUS_INVALID_ARGUMENT, status, "connection"));
  EXPECT(cumulus_upload(connection, &array, &buffer, NULL) == CUMULUS_INVALID_ARGUMENT);
}

static void check_wrong_calls(cumulus_connection* connection, cumulus_status* status) {
  const float zeros[6] = {0, 0, 0, 0, 0, 0};
  float few[5];
  const cumulus_blur_options narrow = {0.1, CUMULUS_CLAMP, CUMULUS_CLAMP};
  const cumulus_blur_options unknown = {2.0, CUMULUS_CLAMP, (cumulus_boundary)9};
  cumulus_buffer* dark = upload_floats(connection, zeros, 2, 3);
  cumulus_buffer* output = NULL;
  EXPECT(refused(cumulus_download(connection, dark, few, sizeof(few), status), CUMULUS_INVALID_ARGUMENT,
                 status, "size"));
  EXPECT(refused(cumulus_build_sampling_table(connection, dark, CUMULUS_PLANE, &output, status),
                 CUMULUS_FAILED_PRECONDITION, status, ""));
  EXPECT(strcmp(cumulus_status_reason(status), "ALL_WEIGHTS_ZERO") == 0);
  EXPECT(refused(cumulus_gaussian_blur(connection, dark, &unknown, &output, status), CUMULUS_INVALID_ARGUMENT,
                 status, "options.boundary_x"));
  EXPECT(cumulus_gaussian_blur(connection, dark, &narrow, &output, status) == CUMULUS_INVALID_ARGUMENT);
  EXPECT(strstr(cumulus_status_field(status), "sigma") != NULL);
  EXPECT(output == NULL);
  cumulus_buffer_release(dark);
}

static void check_no_number(cumulus_connection* connection, cumulus_status* status) {
  const float spoiled[4] = {1, (float)NAN, 1, 1};
  const cumulus_blur_options options = {1.0, CUMULUS_CLAMP, CUMULUS_CLAMP};
  cumulus_buffer* image = upload_floats(connection, spoiled, 2, 2);
  cumulus_buffer* output = NULL;
  EXPECT(cumulus_gaussian_blur(connection, image, &options, &output, status) == CUMULUS_FAILED_PRECONDITION);
  EXPECT(strcmp(cumulus_status_reason(status), "NON_FINITE_PIXEL") == 0 && output == NULL);
  cumulus_buffer_release(image);
}

/* A status keeps nothing of an earlier failure; handles outlive their connection. */
static void check_ends(const cumulus_connect_options* options, cumulus_status* status) {
  const float one[1] = {1};
  float back[1] = {0};
  cumulus_connection* first = NULL;
  cumulus_connection* second = NULL;
  cumulus_buffer* buffer = NULL;
  SUCCEED(cumulus_connect(options, &first, status));
  EXPECT(cumulus_status_message(status)[0] == '\0' && cumulus_status_field(status)[0] == '\0');
  buffer = upload_floats(first, one, 1, 1);
  cumulus_connection_release(first);
  SUCCEED(cumulus_connect(options, &second, status));
  EXPECT(cumulus_download(second, buffer, back, sizeof(back), status) == CUMULUS_NOT_FOUND);
  cumulus_buffer_release(buffer);
  cumulus_connection_release(second);
}

static cumulus_channel* open_channel(const cumulus_connect_options* options, cumulus_status* status) {
  cumulus_channel_options wanted = CUMULUS_CHANNEL_OPTIONS;
  cumulus_channel* channel = NULL;
  EXPECT(refused(cumulus_channel_open(&wanted, &channel, status), CUMULUS_INVALID_ARGUMENT, status,
                 "options.address"));
  wanted.address = options->address;
  wanted.tls_ca = options->tls_ca;
  wanted.token_file = options->token_file;
  wanted.size = 8;
  EXPECT(refused(cumulus_channel_open(&wanted, &channel, status), CUMULUS_INVALID_ARGUMENT, status,
                 "options.size"));
  wanted.size = sizeof(wanted);
  wanted.dead_after_seconds = 0;
  EXPECT(refused(cumulus_channel_open(&wanted, &channel, status), CUMULUS_INVALID_ARGUMENT, status,
                 "options.dead_after_seconds"));
  EXPECT(channel == NULL);
  wanted.dead_after_seconds = 40;
  SUCCEED(cumulus_channel_open(&wanted, &channel, status));
  return channel;
}

/* Of a session that there is not: python/tests/test_c_library.py moves arrays. */
static void check_transfers(const cumulus_connect_options* options, cumulus_status* status) {
  cumulus_channel* channel = open_channel(options, status);
  cumulus_session_name session = {"sessions/0", NULL};
  cumulus_transfer_options terms = CUMULUS_TRANSFER_OPTIONS;
  float values[2] = {1.0f, 2.0f};
  const int64_t shape[1] = {2};
  cumulus_array array = {CUMULUS_FLOAT32, 1, NULL, NULL, sizeof(values)};
  cumulus_destination destination = {"sessions/0/buffers/0", values, sizeof(values)};
  cumulus_transfer* transfer = NULL;
  cumulus_uploaded soon = {10, NULL, ""};
  size_t size = 0;
  array.shape = shape;
  array.data = values;
  SUCCEED(cumulus_channel_start_upload(channel, &session, &array, &terms, &transfer, status));
  EXPECT(cumulus_transfer_result(transfer, status) == CUMULUS_NOT_FOUND);
  EXPECT(strcmp(cumulus_status_reason(status), "SESSION_NOT_FOUND") == 0);
  EXPECT(cumulus_status_details(status, &size) != NULL && size > 0);
  EXPECT(cumulus_transfer_wait(transfer, 0) == 1);
  EXPECT(strcmp(cumulus_transfer_buffer(transfer), "") == 0 && cumulus_transfer_checksum(transfer) == 0);
  cumulus_transfer_release(transfer);
  EXPECT(cumulus_channel_upload(channel, &session, &array, &terms, &soon, status) == CUMULUS_NOT_FOUND);
  EXPECT(soon.buffer == NULL && soon.transfer != NULL);
  cumulus_transfer_release(soon.transfer);
  SUCCEED(cumulus_channel_start_download(channel, &session, &destination, &terms, &transfer, status));
  cumulus_channel_release(channel); /* the transfer goes on */
  EXPECT(cumulus_transfer_result(transfer, status) == CUMULUS_NOT_FOUND);
  EXPECT(cumulus_transfer_done(transfer) == 0);
  cumulus_transfer_release(transfer);
}

static void check_wrong_transfers(const cumulus_connect_options* options, cumulus_status* status) {
  cumulus_channel* channel = open_channel(options, status);
  cumulus_session_name session = {"sessions/0", NULL};
  cumulus_transfer_options terms = CUMULUS_TRANSFER_OPTIONS;
  float values[2] = {1.0f, 2.0f};
  cumulus_destination destination = {NULL, values, sizeof(values)};
  cumulus_transfer* transfer = NULL;
  cumulus_uploaded soon = {10, NULL, ""};
  EXPECT(refused(cumulus_channel_start_download(channel, &session, &destination, &terms, &transfer, status),
                 CUMULUS_INVALID_ARGUMENT, status, "destination.buffer"));
  destination.buffer = "sessions/0/buffers/0";
  terms.timeout_seconds = -1;
  EXPECT(refused(cumulus_channel_start_download(channel, &session, &destination, &terms, &transfer, status),
                 CUMULUS_INVALID_ARGUMENT, status, "options.timeout_seconds"));
  terms.timeout_seconds = 10;
  terms.ttl_nanoseconds = -1;
  EXPECT(refused(cumulus_channel_start_download(channel, &session, &destination, &terms, &transfer, status),
                 CUMULUS_INVALID_ARGUMENT, status, "options.ttl_nanoseconds"));
  terms.ttl_nanoseconds = 0;
  terms.size = 4;
  EXPECT(refused(cumulus_channel_start_download(channel, &session, &destination, &terms, &transfer, status),
                 CUMULUS_INVALID_ARGUMENT, status, "options.size"));
  EXPECT(refused(cumulus_channel_start_upload(channel, &session, NULL, &terms, &transfer, status),
                 CUMULUS_INVALID_ARGUMENT, status, "array"));
  EXPECT(refused(cumulus_channel_upload(channel, &session, NULL, &terms, &soon, status),
                 CUMULUS_INVALID_ARGUMENT, status, "array"));
  EXPECT(refused(cumulus_channel_upload(channel, &session, NULL, &terms, NULL, status),
                 CUMULUS_INVALID_ARGUMENT, status, "uploaded"));
  EXPECT(soon.transfer == NULL);
  EXPECT(transfer == NULL);
  cumulus_channel_release(channel);
}

/* A session by its name, of which there is none; then one call that is refused here. */
static void check_calls(const cumulus_connect_options* options, cumulus_status* status) {
  static const char kMessage[] = "\x0a\x0asessions/0";
  cumulus_channel* channel = open_channel(options, status);
  const cumulus_session_name session = {"sessions/0", NULL};
  cumulus_request request = CUMULUS_REQUEST;
  cumulus_call* call = NULL;
  cumulus_answer soon = {10, NULL, NULL, 0};
  const void* answer = NULL;
  size_t size = 0;
  EXPECT(refused(cumulus_channel_start_call(channel, NULL, &request, &call, status), CUMULUS_INVALID_ARGUMENT,
                 status, "request.method"));
  request.method = "/cumulus.v1.Sessions/GetSession";
  request.message_size = sizeof(kMessage) - 1;
  EXPECT(refused(cumulus_channel_start_call(channel, NULL, &request, &call, status), CUMULUS_INVALID_ARGUMENT,
                 status, "request.message"));
  request.message = kMessage;
  request.timeout_seconds = -1;
  EXPECT(refused(cumulus_channel_start_call(channel, NULL, &request, &call, status), CUMULUS_INVALID_ARGUMENT,
                 status, "request.timeout_seconds"));
  request.timeout_seconds = 10;
  request.size = 8;
  EXPECT(refused(cumulus_channel_start_call(channel, NULL, &request, &call, status), CUMULUS_INVALID_ARGUMENT,
                 status, "request.size"));
  EXPECT(call == NULL);
  request.size = sizeof(request);
  SUCCEED(cumulus_channel_start_call(channel, &session, &request, &call, status));
  EXPECT(cumulus_call_result(call, &answer, &size, status) == CUMULUS_NOT_FOUND);
  EXPECT(strcmp(cumulus_status_reason(status), "SESSION_NOT_FOUND") == 0);
  EXPECT(cumulus_call_wait(call, 0) == 1);
  cumulus_call_release(call);
  EXPECT(cumulus_channel_call(channel, &session, &request, &soon, status) == CUMULUS_NOT_FOUND);
  EXPECT(soon.message == NULL && soon.call != NULL);
  EXPECT(strcmp(cumulus_status_reason(status), "SESSION_NOT_FOUND") == 0);
  cumulus_call_release(soon.call);
  request.timeout_seconds = -1;
  EXPECT(refused(cumulus_channel_call(channel, &session, &request, &soon, status), CUMULUS_INVALID_ARGUMENT,
                 status, "request.timeout_seconds"));
  EXPECT(refused(cumulus_channel_call(channel, &session, &request, NULL, status), CUMULUS_INVALID_ARGUMENT,
                 status, "answer"));
  EXPECT(soon.call == NULL);
  request.timeout_seconds = 10;
  request.method = "/cumulus.v1.Server/GetCapabilities";
  request.message = NULL;
  request.message_size = 0;
  SUCCEED(cumulus_channel_call(channel, NULL, &request, &soon, status));
  EXPECT(soon.message != NULL && soon.size > 0);
  cumulus_call_release(soon.call);
  soon.seconds = 0;
  SUCCEED(cumulus_channel_call(channel, NULL, &request, &soon, status));
  EXPECT(soon.call != NULL && (soon.message == NULL || soon.size > 0)); /* it may be that fast */
  cumulus_call_release(soon.call);
  SUCCEED(cumulus_channel_start_call(channel, NULL, &request, &call, status));
  cumulus_channel_release(channel); /* the call goes on */
  SUCCEED(cumulus_call_result(call, &answer, &size, status));
  EXPECT(answer != NULL && size > 0);
  cumulus_call_cancel(call); /* too late */
  SUCCEED(cumulus_call_result(call, &answer, &size, status));
  cumulus_call_release(call);
}

/* Of a channel without a socket for it: python/tests/test_c_library_calls.py has memory. */
static void check_memory(const cumulus_connect_options* options, cumulus_status* status) {
  cumulus_channel* channel = open_channel(options, status);
  cumulus_memory* memory = NULL;
  void* data = NULL;
  EXPECT(refused(cumulus_channel_allocate(channel, 1 << 20, &memory, &data, status),
                 CUMULUS_FAILED_PRECONDITION, status, ""));
  EXPECT(refused(cumulus_channel_allocate(channel, 1 << 20, NULL, &data, status), CUMULUS_INVALID_ARGUMENT,
                 status, "memory"));
  EXPECT(memory == NULL && data == NULL);
  cumulus_channel_release(channel);
}

static void check_connect(const cumulus_connect_options* options, cumulus_status* status) {
  cumulus_connect_options wrong = *options;
  cumulus_connection* connection = NULL;
  wrong.address = "unix:/nonexistent";
  wrong.connect_timeout_seconds = 0.2;
  EXPECT(refused(cumulus_connect(&wrong, &connection, status), CUMULUS_UNAVAILABLE, status, ""));
  EXPECT(connection == NULL);
  wrong.connect_timeout_seconds = 0;
  EXPECT(refused(cumulus_connect(&wrong, &connection, status), CUMULUS_INVALID_ARGUMENT, status,
                 "options.connect_timeout_seconds"));
  wrong.size = 8;
  EXPECT(refused(cumulus_connect(&wrong, &connection, status), CUMULUS_INVALID_ARGUMENT, status,
                 "options.size"));
  wrong = *options;
  wrong.device = "cuda99";
  EXPECT(cumulus_connect(&wrong, &connection, status) != CUMULUS_OK && connection == NULL);
  wrong = *options;
  wrong.address = NULL;
  EXPECT(refused(cumulus_connect(&wrong, &connection, status), CUMULUS_INVALID_ARGUMENT, status,
                 "options.address"));
}

static void check_nothing(void) {
  size_t size = 1;
  EXPECT(cumulus_status_details(NULL, &size) == NULL && size == 0);
  cumulus_channel_release(NULL);
  cumulus_transfer_release(NULL);
  cumulus_call_release(NULL);
  cumulus_memory_release(NULL);
  EXPECT(cumulus_status_code(NULL) == CUMULUS_OK && cumulus_status_message(NULL)[0] == '\0');
  cumulus_status_release(NULL);
  cumulus_connection_release(NULL);
  cumulus_buffer_release(NULL);
  cumulus_kd_tree_release(NULL);
}

int main(int count, char** arguments) {
  cumulus_connect_options options = CUMULUS_CONNECT_OPTIONS;
  cumulus_connection* connection = NULL;
  cumulus_status* status = cumulus_status_create();
  if (count != 3 && count != 5) return 2;
  options.address = arguments[1];
  if (count == 5) {
    options.tls_ca = arguments[3];
    options.token_file = arguments[4];
  }
  check_nothing();
  check_connect(&options, status);
  SUCCEED(cumulus_connect(&options, &connection, status));
  check_arrays(connection);
  check_table(connection, arguments[2], status);
  check_images(connection, status);
  check_tree(connection, status);
  check_wrong_arrays(connection, status);
  check_wrong_calls(connection, status);
  check_no_number(connection, status);
  check_ends(&options, status);
  check_transfers(&options, status);
  check_wrong_transfers(&options, status);
  check_calls(&options, status);
  check_memory(&options, status);
  cumulus_connection_release(connection);
  cumulus_status_release(status);
  return failures == 0 ? 0 : 1;
}
