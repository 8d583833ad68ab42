/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fast path of the agent, in C because Python is several times slower under emulation: receive
 * a request (port.c), perform its calls (calls.c, children.c), capture the watched memory after
 * each (memory.c) and reply (serve.c).
 *
 * Loaded by vm/guest/native_engine.py.  vm/agent/encoding.py describes requests and replies: all
 * items are little-endian and aligned to 8 bytes.
 */

#ifndef NATIVE_H
#define NATIVE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define EXPORTED __attribute__((visibility("default")))

/* As in vm/wire.py and vm/agent/encoding.py. */
#define FRAME_MAGIC "UEV1"
#define MAGIC_SIZE 4
#define FRAME_LIMIT (8u << 20)
#define REPLY_MAGIC 0x594c5052u
#define NO_DATA UINT32_MAX
#define SLOTS 65536
enum call_kind {
	CALL_SYS,
	CALL_PEEK,
	CALL_POKE,
	CALL_PUT_FD,
	CALL_TAKE_FD,
	CALL_SLURP,
	CALL_SPILL,
	CALL_SPILL_PID,
	CALL_NUMBER,
	CALL_LIST,
	CALL_STATUS,
	CALL_LOOK,
	CALL_KILL,
	CALL_SPAWN,
	CALL_OTHER,
};
enum call_flag { CALL_UNWATCHED = 1 };
enum argument_kind { ARGUMENT_PLAIN, ARGUMENT_DESCRIPTOR, ARGUMENT_IN, ARGUMENT_OUT };
enum watch_status { WATCH_READ, WATCH_UNREADABLE, WATCH_NOT_READ, WATCH_GONE };

/* Why engine_serve() returned; as in native_engine.py. */
enum event {
	PERFORM,
	HOST_GONE,
	NO_MEMORY,
	TOO_LONG,
	BAD_MAGIC,
	BAD_LENGTH,
	BAD_CHECKSUM,
	BAD_PAYLOAD,
	BAD_ORDER,
};

/*
 * Outcome of perform().  LEFT: Python has to perform the call.  BAD: malformed.  LOST: out of
 * memory.  BORN: this process is the forked child.
 */
enum progress { DONE, LEFT, BAD, LOST, BORN };

/* Offsets of frame and payload in a buffer; they align the payload. */
#define FRAME_AT 4
#define PAYLOAD_AT (FRAME_AT + sizeof(struct frame))

/* Big-endian, unlike all else. */
struct frame {
	uint8_t magic[MAGIC_SIZE];
	uint32_t length, checksum;
};

struct request {
	uint64_t id;
	uint32_t watches, calls;
};

struct watch {
	uint64_t pid, where, length;
};

struct call {
	uint32_t kind, flags;
	uint64_t size; /* of the following body, with padding */
};

struct syscall {
	uint64_t number;
	uint32_t arguments;
	int32_t slot; /* for a returned descriptor, or -1 */
};

/* The value is a number, a slot, the length of the following bytes, or of a buffer (OUT). */
struct argument {
	uint64_t kind, value;
};

struct place {
	uint64_t where, length; /* PUT_FD and TAKE_FD: a slot instead of a length */
};

struct process {
	uint64_t pid, signal;
};

struct file {
	uint64_t flags, length; /* of the following content; the path comes last */
};

struct reply {
	uint32_t magic, results;
	uint64_t id;
};

/* Followed by `length` bytes of data unless that is NO_DATA. */
struct result {
	int64_t value;
	uint32_t error, length;
};

struct buffer {
	uint8_t *bytes;
	size_t room, used;
};

/* The part of a request that is not parsed yet. */
struct rest {
	uint8_t *bytes;
	size_t length;
};

/* The current request, and its reply so far. */
extern struct buffer in, out;
extern struct rest rest;
extern const struct watch *watches;
extern uint32_t watch_count, calls_left;

static inline size_t aligned(size_t length)
{
	return (length + 7) & ~(size_t)7;
}

static inline struct result answered(int64_t value)
{
	return (struct result){ value, value == -1 ? (uint32_t)errno : 0, NO_DATA };
}

static inline struct result refused(int error)
{
	return (struct result){ -1, (uint32_t)error, NO_DATA };
}

/* memory.c */
bool load(uint8_t *to, const struct watch *places, size_t count);
int read_own(uint8_t *to, const struct watch *place);
int read_other(uint8_t *to, const struct watch *place);
bool store(uint64_t where, const uint8_t *bytes, size_t length);

/* port.c */
uint8_t *reserve(struct buffer *buffer, size_t more);
void *take(struct rest *from, size_t length);
int open_device(const char *device);
EXPORTED void engine_drain_device(const char *device);
void open_port(int descriptor);
void set_before_read(bool (*wait)(void));
EXPORTED int engine_port(void);
pid_t own_pid(void);
bool send_text(const char *text);
enum event receive(void);
bool send_reply(void);

/* calls.c */
enum progress perform(enum call_kind kind, struct rest body, struct result *result);

/* children.c */
EXPORTED bool engine_supervises(void);
struct result end_process(pid_t pid, int signal);
enum progress spawn(const char *name, struct result *result);

#endif
