#ifndef CUMULUS_CUMULUS_H
#define CUMULUS_CUMULUS_H

/*
 * The client library for C, and for plugins of any compiler that calls C: libcumulus.so, which shows these
 * functions and nothing else. C99; docs/c.md has an example.
 *
 *   cumulus_connect_options options = CUMULUS_CONNECT_OPTIONS;
 *   options.address = "127.0.0.1:50651";
 *   cumulus_status* status = cumulus_status_create();
 *   cumulus_connection* connection;
 *   if (cumulus_connect(&options, &connection, status) != CUMULUS_OK) puts(cumulus_status_message(status));
 *
 * Calls.      Each waits for its end, and answers a cumulus_code. No exception leaves it.
 * Status.     The last argument of each takes what the code does not say; it may be NULL.
 * Ownership.  What a function puts through a pointer to a handle is the caller's, until its _release function
 *             takes it; these take NULL too. After an error the handle is NULL. Inputs stay the caller's, and
 * are not read after the call. Threads.    A handle may be used by several threads at once, except a
 * cumulus_status, which is one thread's; a _release function may not run beside another call with the same
 * handle. Order.      Handles may be released in any order. Buffers and trees belong to their connection:
 * without it, or with another, calls that name them answer CUMULUS_NOT_FOUND. Memory.     "Host" is the
 * caller's memory, "device" the memory of the server's GPU or CPU backend.
 *
 * A program links this library or the C++ one (Cumulus::client), not both: each registers the wire messages.
 */

#include <stddef.h> /* NOLINT(modernize-deprecated-headers): it is C */
#include <stdint.h> /* NOLINT(modernize-deprecated-headers) */

#if defined(__GNUC__)
#define CUMULUS_API __attribute__((visibility("default")))
#else
#define CUMULUS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* NOLINTBEGIN(readability-identifier-naming): C's names */

/* The codes of gRPC, with their numbers. The last name of each enumeration here fixes its size for every
 * compiler. */
typedef enum cumulus_code {
  CUMULUS_OK = 0,
  CUMULUS_CANCELLED = 1,
  CUMULUS_UNKNOWN = 2,
  CUMULUS_INVALID_ARGUMENT = 3,  /* cumulus_status_field names what is wrong */
  CUMULUS_DEADLINE_EXCEEDED = 4, /* cumulus_connect_options.call_timeout_seconds */
  CUMULUS_NOT_FOUND = 5,         /* the buffer or the connection's session is gone */
  CUMULUS_ALREADY_EXISTS = 6,
  CUMULUS_PERMISSION_DENIED = 7,
  CUMULUS_RESOURCE_EXHAUSTED = 8,  /* memory, here or on the device, or a limit of the server */
  CUMULUS_FAILED_PRECONDITION = 9, /* the input has no answer; cumulus_status_reason says why */
  CUMULUS_ABORTED = 10,
  CUMULUS_OUT_OF_RANGE = 11,
  CUMULUS_UNIMPLEMENTED = 12,
  CUMULUS_INTERNAL = 13,
  CUMULUS_UNAVAILABLE = 14, /* no server, or one that is busy or stopping */
  CUMULUS_DATA_LOSS = 15,   /* a checksum is wrong */
  CUMULUS_UNAUTHENTICATED = 16,
  CUMULUS_CODE_OF_32_BITS = 0x7FFFFFFF
} cumulus_code;

typedef struct cumulus_status cumulus_status; /* of the last call that it was given to */
typedef struct cumulus_connection
    cumulus_connection;                         /* to one server, with a session on one of its devices */
typedef struct cumulus_buffer cumulus_buffer;   /* an array in device memory, immutable */
typedef struct cumulus_kd_tree cumulus_kd_tree; /* a tree in device memory */
typedef struct cumulus_channel
    cumulus_channel; /* to one server, for transfers of sessions that others hold */
typedef struct cumulus_transfer cumulus_transfer; /* of one array, under way or ended */
typedef struct cumulus_call cumulus_call;         /* of the wire, under way or ended */
typedef struct cumulus_memory cumulus_memory;     /* of this process, which a server has mapped, too */

/* "0.1.0". Static memory. */
CUMULUS_API const char* cumulus_version(void);

/* A status of CUMULUS_OK; NULL where there is no memory for it. */
CUMULUS_API cumulus_status* cumulus_status_create(void);
CUMULUS_API void cumulus_status_release(cumulus_status* status);

/* Of NULL: CUMULUS_OK and "". The strings are UTF-8, never NULL, and valid until the status is given to
 * another call or released. */
CUMULUS_API cumulus_code cumulus_status_code(const cumulus_status* status);
/* What is wrong and what would be right, a sentence. */
CUMULUS_API const char* cumulus_status_message(const cumulus_status* status);
/* What is wrong of a CUMULUS_INVALID_ARGUMENT: an argument of the function, such as "array.shape", or, where
 * the server found it, the path of a field of the request, such as "x.gaussian.sigma". "" where nothing is
 * named. */
CUMULUS_API const char* cumulus_status_field(const cumulus_status* status);
/* Why, as a constant to compare with: "ALL_WEIGHTS_ZERO", "BUFFER_EVICTED", "QUEUE_FULL", ...; "" without
 * one. */
CUMULUS_API const char* cumulus_status_reason(const cumulus_status* status);
/* All that the server said of the error: a google.rpc.Status, serialized, of `size` bytes; of 0 where it said
 * nothing. Valid as the strings are. */
CUMULUS_API const void* cumulus_status_details(const cumulus_status* status, size_t* size);

/* Strings are read during cumulus_connect only; NULL is as if absent. */
typedef struct cumulus_connect_options {
  size_t size;          /* of this structure, as the caller was compiled */
  const char* address;  /* HOST:PORT, [HOST6]:PORT or unix:PATH; NULL: CUMULUS_SERVER or the user's file */
  const char* tls_ca;   /* file of authorities (PEM) of the server's certificate; NULL: no TLS */
  const char* tls_cert; /* file of the client's certificate, PEM; with tls_key or not at all */
  const char* tls_key;
  const char* token_file;         /* file with the token that `cumulusd token` wrote */
  const char* device;             /* "cpu", "cuda0", ...; NULL: the least loaded one */
  double connect_timeout_seconds; /* for the server's first answer */
  double call_timeout_seconds;    /* of each later call, its repetitions included */
} cumulus_connect_options;

/* The defaults. Where all of tls_ca, tls_cert, tls_key and token_file are NULL, the environment
 * (CUMULUS_TLS_CA, ...) or the user's configuration file says them. */
#define CUMULUS_CONNECT_OPTIONS \
  { sizeof(cumulus_connect_options), NULL, NULL, NULL, NULL, NULL, NULL, 10.0, 300.0 }

/* Reaches a server and opens a session on it, whose lease a thread of the library renews.
 * INVALID_ARGUMENT: no address, a file that cannot be used, an unknown device. UNAUTHENTICATED: the server
 * wants a token or a certificate. UNAVAILABLE: no server answers within connect_timeout_seconds. */
CUMULUS_API cumulus_code cumulus_connect(const cumulus_connect_options* options,
                                         cumulus_connection** connection, cumulus_status* status);

/* Ends the session, and with it frees its buffers on the device. Waits 2 s at most. */
CUMULUS_API void cumulus_connection_release(cumulus_connection* connection);

/* The numbers are part of the ABI. */
typedef enum cumulus_element_type {
  CUMULUS_UINT8 = 0,
  CUMULUS_UINT16 = 1,
  CUMULUS_UINT32 = 2,
  CUMULUS_UINT64 = 3,
  CUMULUS_INT32 = 4,
  CUMULUS_INT64 = 5,
  CUMULUS_FLOAT16 = 6, /* IEEE binary16 */
  CUMULUS_FLOAT32 = 7,
  CUMULUS_FLOAT64 = 8,
  CUMULUS_ELEMENT_TYPE_OF_32_BITS = 0x7FFFFFFF
} cumulus_element_type;

/* An array in host memory: dense, row-major, little-endian. Images are [height, width, channels] or
 * [height, width], point sets [points, dimensions]. */
typedef struct cumulus_array {
  cumulus_element_type type;
  int32_t rank;         /* extents in shape, 1 to 8 */
  const int64_t* shape; /* outermost first */
  const void* data;     /* aligned for the type */
  size_t size;          /* of data in bytes: the product of the extents times that of an element */
} cumulus_array;

/* Copies an array from host to device memory; each chunk carries a checksum.
 * INVALID_ARGUMENT: array.type, array.rank, array.shape, array.size. RESOURCE_EXHAUSTED: too large. */
CUMULUS_API cumulus_code cumulus_upload(cumulus_connection* connection, const cumulus_array* array,
                                        cumulus_buffer** buffer, cumulus_status* status);

/* Copies a buffer from device to host memory, verifying each chunk's checksum. `size` is destination's in
 * bytes. INVALID_ARGUMENT: size is not cumulus_buffer_size. DATA_LOSS: a checksum is wrong; destination holds
 * rubbish. */
CUMULUS_API cumulus_code cumulus_download(cumulus_connection* connection, const cumulus_buffer* buffer,
                                          void* destination, size_t size, cumulus_status* status);

/* Of a buffer, which is not NULL; these make no call. */
CUMULUS_API cumulus_element_type cumulus_buffer_type(const cumulus_buffer* buffer);
CUMULUS_API int32_t cumulus_buffer_rank(const cumulus_buffer* buffer);
CUMULUS_API const int64_t* cumulus_buffer_shape(
    const cumulus_buffer* buffer);                                    /* valid as long as the buffer */
CUMULUS_API size_t cumulus_buffer_size(const cumulus_buffer* buffer); /* in bytes */
/* Frees the device's memory, without waiting. */
CUMULUS_API void cumulus_buffer_release(cumulus_buffer* buffer);

/* Transfers and calls for a client in another language, which holds the session itself: these neither renew
 * nor delete it, nor its buffers. They run on threads of the library, as fast as cumulus_upload and
 * cumulus_download.
 *
 *   cumulus_channel_start_download(channel, &session, &destination, &options, &transfer, status);
 *   while (!cumulus_transfer_wait(transfer, 0.05)) ...            look whether somebody wants it to stop
 *   if (cumulus_transfer_result(transfer, status) == CUMULUS_OK) ...
 *   cumulus_transfer_release(transfer);
 */

/* Strings are read during cumulus_channel_open only; NULL is as if absent. Neither the environment nor the
 * user's configuration file adds to them. */
typedef struct cumulus_channel_options {
  size_t size;         /* of this structure, as the caller was compiled */
  const char* address; /* HOST:PORT, [HOST6]:PORT or unix:PATH */
  const char* tls_ca;  /* as in cumulus_connect_options, as are the next three */
  const char* tls_cert;
  const char* tls_key;
  const char* token_file;
  const char* shared_memory_socket; /* Capabilities.shared_memory_socket; NULL: arrays go over streams */
  int32_t joined_uploads;           /* Capabilities.joined_uploads */
  double connect_timeout_seconds;   /* of one attempt to reach the server */
  double dead_after_seconds;        /* without a sign of life a server counts as dead; at least 2 */
} cumulus_channel_options;
#define CUMULUS_CHANNEL_OPTIONS \
  { sizeof(cumulus_channel_options), NULL, NULL, NULL, NULL, NULL, NULL, 0, 10.0, 40.0 }

/* Makes no call: the first transfer connects. INVALID_ARGUMENT: no address, a file that cannot be used. */
CUMULUS_API cumulus_code cumulus_channel_open(const cumulus_channel_options* options,
                                              cumulus_channel** channel, cumulus_status* status);
/* Its transfers go on. */
CUMULUS_API void cumulus_channel_release(cumulus_channel* channel);

/* As the answer of CreateSession names it. Read during the call that it is given to. */
typedef struct cumulus_session_name {
  const char* name;     /* sessions/{session} */
  const char* instance; /* of the server; NULL: whichever */
} cumulus_session_name;

typedef struct cumulus_transfer_options {
  size_t size;             /* of this structure, as the caller was compiled */
  double timeout_seconds;  /* to the transfer's end, its repetitions included */
  int64_t ttl_nanoseconds; /* of a new buffer; 0: as long as the session */
  int32_t evictable;       /* the server may drop a new buffer when the device runs out of memory */
  int32_t checksum;        /* of an upload is wanted: cumulus_transfer_checksum */
  const char* request_id;  /* for the server's log, at most 128 bytes; NULL: none */
} cumulus_transfer_options;
#define CUMULUS_TRANSFER_OPTIONS \
  { sizeof(cumulus_transfer_options), 300.0, 0, 0, 0, NULL }

/* Begins to copy an array to a new buffer of the session. The array's data stay as they are until the
 * transfer has ended. INVALID_ARGUMENT: as cumulus_upload. */
CUMULUS_API cumulus_code cumulus_channel_start_upload(cumulus_channel* channel,
                                                      const cumulus_session_name* session,
                                                      const cumulus_array* array,
                                                      const cumulus_transfer_options* options,
                                                      cumulus_transfer** transfer, cumulus_status* status);

/* As cumulus_channel_start_upload, cumulus_transfer_wait and cumulus_transfer_result one after another, for
 * languages of which each call into C takes its time. */
typedef struct cumulus_uploaded {
  double seconds;             /* to wait at most; the others are written */
  cumulus_transfer* transfer; /* NULL: it has not begun; else to be released */
  const char* buffer;         /* as cumulus_transfer_buffer; NULL, of CUMULUS_OK: it has not ended yet */
} cumulus_uploaded;
CUMULUS_API cumulus_code cumulus_channel_upload(cumulus_channel* channel, const cumulus_session_name* session,
                                                const cumulus_array* array,
                                                const cumulus_transfer_options* options,
                                                cumulus_uploaded* uploaded, cumulus_status* status);

typedef struct cumulus_destination {
  const char* buffer; /* its name, sessions/{session}/buffers/{buffer} */
  void* data;         /* host memory, nobody else's until the transfer has ended */
  size_t size;        /* of the buffer, in bytes */
} cumulus_destination;
/* Begins to copy a buffer of the session to host memory, verifying each chunk's checksum. */
CUMULUS_API cumulus_code cumulus_channel_start_download(cumulus_channel* channel,
                                                        const cumulus_session_name* session,
                                                        const cumulus_destination* destination,
                                                        const cumulus_transfer_options* options,
                                                        cumulus_transfer** transfer, cumulus_status* status);

/* Of a transfer, which is not NULL; by any thread. */
/* Waits for its end, `seconds` at most. Whether it has ended. */
CUMULUS_API int32_t cumulus_transfer_wait(cumulus_transfer* transfer, double seconds);
/* How many bytes have been moved. */
CUMULUS_API size_t cumulus_transfer_done(const cumulus_transfer* transfer);
/* Stops it, soon; its result is CUMULUS_CANCELLED unless it has ended before. */
CUMULUS_API void cumulus_transfer_cancel(cumulus_transfer* transfer);
/* Waits for the end, and says how it was. DATA_LOSS, and every other failure of a download: its memory holds
 * rubbish. */
CUMULUS_API cumulus_code cumulus_transfer_result(cumulus_transfer* transfer, cumulus_status* status);
/* Of an upload whose result is CUMULUS_OK: the name of its buffer, valid as long as the transfer; else "". */
CUMULUS_API const char* cumulus_transfer_buffer(cumulus_transfer* transfer);
/* Likewise: the CRC-32C of the chunks' CRC-32Cs, where the options want it; else 0. */
CUMULUS_API uint32_t cumulus_transfer_checksum(cumulus_transfer* transfer);
/* Cancels it and waits for its end. */
CUMULUS_API void cumulus_transfer_release(cumulus_transfer* transfer);

/* `size` bytes at `data`, aligned to a page, that transfers of this channel take from where they lie, and
 * bring there, if they are of all of them; docs/shared_memory.md has the conditions. The memory stays when
 * the channel is released. FAILED_PRECONDITION: the server shares none with this channel. */
CUMULUS_API cumulus_code cumulus_channel_allocate(cumulus_channel* channel, size_t size,
                                                  cumulus_memory** memory, void** data,
                                                  cumulus_status* status);
/* No transfer may still use it. */
CUMULUS_API void cumulus_memory_release(cumulus_memory* memory);
/* Read during the call that it is given to. */
typedef struct cumulus_request {
  size_t size;            /* of this structure, as the caller was compiled */
  const char* method;     /* of proto/cumulus/v1, with one answer: "/cumulus.v1.Operations/BuildKdTree" */
  const void* message;    /* its request, serialized; NULL: of no bytes */
  size_t message_size;    /* in bytes */
  double timeout_seconds; /* to the call's end, its repetitions included */
} cumulus_request;
#define CUMULUS_REQUEST \
  { sizeof(cumulus_request), NULL, NULL, 0, 300.0 }

/* Begins a call, in the name of a session or, of NULL, of none. It is repeated while the server turns it away
 * with a time to come back. */
CUMULUS_API cumulus_code cumulus_channel_start_call(cumulus_channel* channel,
                                                    const cumulus_session_name* session,
                                                    const cumulus_request* request, cumulus_call** call,
                                                    cumulus_status* status);
/* As it, cumulus_call_wait and cumulus_call_result one after another: as cumulus_channel_upload. */
typedef struct cumulus_answer {
  double seconds;      /* to wait at most; the others are written */
  cumulus_call* call;  /* NULL: it has not begun; else to be released */
  const void* message; /* as of cumulus_call_result; NULL, of CUMULUS_OK: it has not ended yet */
  size_t size;
} cumulus_answer;
CUMULUS_API cumulus_code cumulus_channel_call(cumulus_channel* channel, const cumulus_session_name* session,
                                              const cumulus_request* request, cumulus_answer* answer,
                                              cumulus_status* status);
/* Of a call, which is not NULL; by any thread. */
/* Waits for its end, `seconds` at most. Whether it has ended. */
CUMULUS_API int32_t cumulus_call_wait(cumulus_call* call, double seconds);
/* Stops it, soon, on the server, too; its result is CUMULUS_CANCELLED unless it has ended before. */
CUMULUS_API void cumulus_call_cancel(cumulus_call* call);
/* Waits for the end, and says how it was. `message`: the answer, serialized, of `size` bytes; valid as long
 * as the call. */
CUMULUS_API cumulus_code cumulus_call_result(cumulus_call* call, const void** message, size_t* size,
                                             cumulus_status* status);
/* Cancels it, without waiting for its end. */
CUMULUS_API void cumulus_call_release(cumulus_call* call);

/* What a map's plane stands for: docs/operations/sampling_table.md. */
typedef enum cumulus_projection {
  CUMULUS_LAT_LONG = 0,   /* rows are polar angle 0 (top, +Y) to pi, columns azimuth */
  CUMULUS_PLANE = 1,      /* the unit square */
  CUMULUS_EQUAL_AREA = 2, /* the octahedral map of pbrt-v4 */
  CUMULUS_PROJECTION_OF_32_BITS = 0x7FFFFFFF
} cumulus_projection;

/* Builds a table that draws samples in proportion to `weights`: [height, width] or [height, width, channels],
 * float32, float16 or uint8, linear, in device memory; of three or four channels the luminance (Rec. 709).
 * `table`: uint8 [bytes], in device memory; downloaded to memory aligned to 8 bytes, it is what map_table of
 * cumulus/table_file.h opens (C++17). Densities are per steradian, of a plane per unit of area.
 * INVALID_ARGUMENT: shape or type. FAILED_PRECONDITION: ALL_WEIGHTS_ZERO; INVALID_WEIGHT, where one is
 * negative, infinite or no number. */
CUMULUS_API cumulus_code cumulus_build_sampling_table(cumulus_connection* connection,
                                                      const cumulus_buffer* weights,
                                                      cumulus_projection projection, cumulus_buffer** table,
                                                      cumulus_status* status);

/* Downloads a table and writes it as a .cst file with its checksum, under another name first, so that `path`
 * never holds half of one. INVALID_ARGUMENT: `table` is none. UNKNOWN: the file cannot be written. */
CUMULUS_API cumulus_code cumulus_save_sampling_table(cumulus_connection* connection,
                                                     const cumulus_buffer* table, const char* path,
                                                     cumulus_status* status);

/* What an image is beyond its edge: of a b c d */
typedef enum cumulus_boundary {
  CUMULUS_ZERO = 0,    /* 0 0 0 | a b c d | 0 0 0 */
  CUMULUS_CLAMP = 1,   /* a a a | a b c d | d d d */
  CUMULUS_REPEAT = 2,  /* b c d | a b c d | a b c */
  CUMULUS_REFLECT = 3, /* c b a | a b c d | d c b */
  CUMULUS_MIRROR = 4,  /* d c b | a b c d | c b a */
  CUMULUS_EXACT = 5,   /* nothing: the mean of what lies inside */
  CUMULUS_BOUNDARY_OF_32_BITS = 0x7FFFFFFF
} cumulus_boundary;

typedef struct cumulus_blur_options {
  double sigma;                /* standard deviation in pixels, 0.5 to 10000 */
  cumulus_boundary boundary_y; /* above and below */
  cumulus_boundary boundary_x; /* left and right */
} cumulus_blur_options;

/* A Gaussian blur of `image`, [height, width] or [height, width, channels] of 1 to 4 channels, float32,
 * float16 or float64, in device memory; `blurred` is of its type and shape, in device memory.
 * INVALID_ARGUMENT: shape, type, sigma, boundary. FAILED_PRECONDITION: NON_FINITE_PIXEL. */
CUMULUS_API cumulus_code cumulus_gaussian_blur(cumulus_connection* connection, const cumulus_buffer* image,
                                               const cumulus_blur_options* options, cumulus_buffer** blurred,
                                               cumulus_status* status);

/* S(y, x), the sum of all pixels in rows 0..y and columns 0..x of `image`, [height, width] or [height, width,
 * channels] of 1 to 4 channels, in device memory; of its shape. uint8 images have uint32 sums, uint16 and
 * uint32 uint64, int32 int64, float ones float64. INVALID_ARGUMENT: shape, type, or sums that could exceed
 * their type. */
CUMULUS_API cumulus_code cumulus_build_summed_area_table(cumulus_connection* connection,
                                                         const cumulus_buffer* image, cumulus_buffer** sums,
                                                         cumulus_status* status);

/* A tree over `points`, [points, dimensions], 2 to 16 dimensions, float32 or float64, in device memory;
 * leaves of 40 to 80 points. `points` may be released afterwards. INVALID_ARGUMENT: shape or type.
 * FAILED_PRECONDITION: NAN_COORDINATE. */
CUMULUS_API cumulus_code cumulus_build_kd_tree(cumulus_connection* connection, const cumulus_buffer* points,
                                               cumulus_kd_tree** tree, cumulus_status* status);
CUMULUS_API void cumulus_kd_tree_release(cumulus_kd_tree* tree);

typedef struct cumulus_neighbors {
  cumulus_buffer* indices; /* int64 [queries, nearest]: rows of the tree's points; -1 where there are fewer */
  cumulus_buffer*
      distances; /* of the tree's type, likewise, in the points' unit; +Inf where there are fewer */
} cumulus_neighbors;

/* The `nearest` (1 to 128) nearest points of each of `queries`, [queries, dimensions] of the tree's type, in
 * device memory; nearest first, equal distances by index. The caller releases both buffers of `neighbors`.
 * INVALID_ARGUMENT: shape, type, nearest. FAILED_PRECONDITION: NAN_COORDINATE. */
CUMULUS_API cumulus_code cumulus_find_nearest(cumulus_connection* connection, const cumulus_kd_tree* tree,
                                              const cumulus_buffer* queries, int32_t nearest,
                                              cumulus_neighbors* neighbors, cumulus_status* status);

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif
