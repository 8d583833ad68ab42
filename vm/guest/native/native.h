/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the supervisor and its actors do most, without their interpreter, which takes several times
 * as long under emulation: a request is taken from the port (port.c), its calls are performed
 * (calls.c, and children.c for the supervisor), the watched memory is looked at after each of them
 * (memory.c), and all of it is answered (serve.c).
 *
 * vm/guest/native_native_engine.py loads this.  vm/agent/encoding.py has the layout of requests and replies: everything
 * in them begins at a multiple of 8 bytes and is little-endian.
 */

#ifndef NATIVE_H
#define NATIVE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define EXPORTED __attribute__((visibility("default")))

/* As in wire.py and packing.py. */
#define FRAME_MAGIC "UEV1"
#define MAGIC_SIZE 4
#define FRAME_LIMIT (8u << 20)
#define REPLY_MAGIC 0x594c5052u
#define NO_DATA UINT32_MAX
#define SLOTS 65536
enum call_kind {
	SYS,
	PEEK,
	POKE,
	PUT_FD,
	TAKE_FD,
	SLURP,
	SPILL,
	SPILL_PID,
	NUMBER,
	LIST,
	STATUS,
	LOOK,
	KILL,
	SPAWN,
	OTHER,
};
enum call_flag { UNSEEN = 1 };
enum argument_kind { PLAIN, DESCRIPTOR, IN, OUT };
enum look { SEEN, UNREADABLE, NOT_LOOKED_AT, GONE };

/* As in native_engine.py: why engine_serve() returned. */
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

/* How far a call is: LEFT is for somebody else, BAD is none, and of BORN we are the answer. */
enum progress { DONE, LEFT, BAD, LOST, BORN };

/* Where a frame begins in a buffer, and its payload: that is aligned. */
#define FRAME_AT 4
#define PAYLOAD_AT (FRAME_AT + sizeof(struct frame))

/* Its numbers are big-endian, others are not. */
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
	uint64_t size; /* of what follows, with its padding */
};

struct syscall {
	uint64_t number;
	uint32_t arguments;
	int32_t slot; /* where a descriptor that it returns is kept, or -1 */
};

/* The value is a number, a slot, or the length of what follows (IN) or is asked for (OUT). */
struct argument {
	uint64_t kind, value;
};

struct place {
	uint64_t where, length; /* or, in the place of the length, a slot */
};

struct process {
	uint64_t pid, signal;
};

struct file {
	uint64_t flags, length; /* of what follows; then comes the path */
};

struct reply {
	uint32_t magic, results;
	uint64_t id;
};

/* What a call came to; NO_DATA, or so many bytes behind it. */
struct result {
	int64_t value;
	uint32_t error, length;
};

struct buffer {
	uint8_t *bytes;
	size_t room, used;
};

/* Bytes of a request that have not been looked at. */
struct rest {
	uint8_t *bytes;
	size_t length;
};

/* The request that is performed, and its reply so far. */
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
int look_at_own(uint8_t *to, const struct watch *place);
int look_into(uint8_t *to, const struct watch *place);
bool store(uint64_t where, const uint8_t *bytes, size_t length);

/* port.c */
uint8_t *reserve(struct buffer *buffer, size_t more);
void *take(struct rest *from, size_t length);
void open_port(int descriptor);
int port_descriptor(void);
pid_t own_pid(void);
bool send_text(const char *text);
enum event receive(void);
bool send_reply(void);

/* calls.c */
enum progress perform(enum call_kind kind, struct rest body, struct result *result);

/* children.c */
EXPORTED bool engine_supervises(void);
EXPORTED void engine_be_born(const char *device);
bool wait_for_port(void);
struct result end_process(pid_t pid, int signal);
enum progress spawn(const char *name, struct result *result);

#endif
