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
 * Calls. Each waits for its end, and answers a cumulus_code. No exception leaves it.
 *
 * Status. The last argument of each takes what the code does not say; it may be NULL.
 *
 * Ownership. What a function puts through a pointer to a handle is the caller's, until its _release function
 * takes it; these take NULL too. After an error the handle is NULL. Inputs stay the caller's, and are not
 * read after the call.
 *
 * Threads. A handle may be used by several threads at once, except a cumulus_status, which is one thread's; a
 * _release function may not run beside another call with the same handle.
 *
 * Order. Handles may be released in any order. Buffers and trees belong to their connection: without it, or
 * with another, calls that name them answer CUMULUS_NOT_FOUND.
 *
 * Memory. "Host" is the caller's memory, "device" the memory of the server's GPU or CPU backend.
 *
 * Clients in other languages, which hold their sessions themselves, find transfers and calls in
 * cumulus/channel.h.
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
