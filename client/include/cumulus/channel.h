#ifndef CUMULUS_CHANNEL_H
#define CUMULUS_CHANNEL_H

/* Transfers and calls for a client in another language, which holds the session itself: these neither renew
 * nor delete it, nor its buffers. They run on threads of the library, as fast as cumulus_upload and
 * cumulus_download.
 *
 *   cumulus_channel_start_download(channel, &session, &destination, &options, &transfer, status);
 *   while (!cumulus_transfer_wait(transfer, 0.05)) ...            look whether somebody wants it to stop
 *   if (cumulus_transfer_result(transfer, status) == CUMULUS_OK) ...
 *   cumulus_transfer_release(transfer);
 */

#include <stddef.h> /* NOLINT(modernize-deprecated-headers): it is C */
#include <stdint.h> /* NOLINT(modernize-deprecated-headers) */

#include "cumulus/cumulus.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NOLINTBEGIN(readability-identifier-naming) */

typedef struct cumulus_channel
    cumulus_channel; /* to one server, for transfers of sessions that others hold */
typedef struct cumulus_transfer cumulus_transfer; /* of one array, under way or ended */
typedef struct cumulus_call cumulus_call;         /* of the wire, under way or ended */
typedef struct cumulus_memory cumulus_memory;     /* of this process, which a server has mapped, too */

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

/* NOLINTEND(readability-identifier-naming) */

#ifdef __cplusplus
}
#endif

#endif
