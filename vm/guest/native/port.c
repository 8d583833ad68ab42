// SPDX-License-Identifier: GPL-2.0
/* Receive and send frames, and manage the buffers they lie in. */

#define _GNU_SOURCE
#include "native.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* Size of one read, and initial size of a buffer. */
#define ROOM ((size_t)1 << 16)

/* Number of the last request received. */
EXPORTED uint64_t engine_request;

struct buffer in, out;
struct rest rest;
const struct watch *watches;
uint32_t watch_count, calls_left;

/* If set, called before each read(); returns false when the host is gone. */
static bool (*before_read)(void);
static int port = -1;
static pid_t pid; /* of the process that serves it */
static size_t frame_end; /* of the current request in `in`, or 0 */
/* CRC of each byte value, followed by 0 to 7 zero bytes. */
static uint32_t crc_table[sizeof(uint64_t)][256];

__attribute__((constructor)) static void make_table(void)
{
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t entry = byte;

		for (int bit = 0; bit < 8; bit++)
			entry = entry >> 1 ^ (entry & 1 ? 0xedb88320u : 0);
		crc_table[0][byte] = entry;
	}
	for (size_t zeros = 1; zeros < sizeof(uint64_t); zeros++) {
		for (uint32_t byte = 0; byte < 256; byte++) {
			uint32_t entry = crc_table[zeros - 1][byte];

			crc_table[zeros][byte] = entry >> 8 ^ crc_table[0][entry & 0xff];
		}
	}
}

/* zlib's crc32 seeded with the length, as in wire.py; eight bytes per step. */
static uint32_t checksum(const uint8_t *bytes, uint32_t length)
{
	const uint8_t *end = bytes + length;
	uint32_t sum = ~length;

	for (; end - bytes >= (ptrdiff_t)sizeof(uint64_t); bytes += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, bytes, sizeof(word));
		word ^= sum;
		sum = crc_table[7][word & 0xff] ^ crc_table[6][word >> 8 & 0xff] ^
		      crc_table[5][word >> 16 & 0xff] ^ crc_table[4][word >> 24 & 0xff] ^
		      crc_table[3][word >> 32 & 0xff] ^ crc_table[2][word >> 40 & 0xff] ^
		      crc_table[1][word >> 48 & 0xff] ^ crc_table[0][word >> 56];
	}
	for (; bytes < end; bytes++)
		sum = sum >> 8 ^ crc_table[0][(sum ^ *bytes) & 0xff];
	return ~sum;
}

/* Make room for more bytes after the used ones; NULL if out of memory. */
uint8_t *reserve(struct buffer *buffer, size_t more)
{
	size_t room = buffer->room ? buffer->room : ROOM;
	uint8_t *bytes;

	while (room < buffer->used + more)
		room *= 2;
	if (room > buffer->room) {
		if (buffer->room)
			bytes = mremap(buffer->bytes, buffer->room, room, MREMAP_MAYMOVE);
		else
			bytes = mmap(NULL, room, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (bytes == MAP_FAILED)
			return NULL;
		buffer->bytes = bytes;
		buffer->room = room;
	}
	return buffer->bytes + buffer->used;
}

/* Take the next bytes of a request and skip their padding.  NULL if the request is too short. */
void *take(struct rest *from, size_t length)
{
	uint8_t *taken = from->bytes;

	if (length > from->length || aligned(length) > from->length)
		return NULL;
	from->bytes += aligned(length);
	from->length -= aligned(length);
	return taken;
}

/*
 * The number of a device that names an inherited descriptor, "fd:NUMBER"; -1 for a path.  A guest
 * that is the running kernel has sockets for ports.
 */
static int inherited(const char *device)
{
	int number;

	return sscanf(device, "fd:%d", &number) == 1 ? number : -1;
}

/* Open the device of a port; -1 if it cannot be opened. */
int open_device(const char *device)
{
	int number = inherited(device);

	if (number < 0)
		return open(device, O_RDWR | O_CLOEXEC);
	return fcntl(number, F_DUPFD_CLOEXEC, 0);
}

/* Discard what was sent to the last user of a port.  Closing a virtio port does so itself. */
EXPORTED void engine_drain_device(const char *device)
{
	uint8_t discarded[4096];
	int number = inherited(device);

	while (number >= 0 && recv(number, discarded, sizeof(discarded), MSG_DONTWAIT) > 0)
		;
}

void open_port(int descriptor)
{
	port = descriptor;
	pid = getpid();
	engine_request = 0;
	in.used = FRAME_AT;
	frame_end = 0;
}

void set_before_read(bool (*wait)(void))
{
	before_read = wait;
}

EXPORTED int engine_port(void)
{
	return port;
}

/* getpid() without a system call. */
pid_t own_pid(void)
{
	return pid;
}

/* Write the header before a payload and send both.  False when the host is gone. */
static bool send_frame(uint8_t *bytes, size_t used)
{
	uint8_t *next = bytes + FRAME_AT, *end = bytes + used;
	uint32_t length = (uint32_t)(used - PAYLOAD_AT);
	struct frame frame = {
		.magic = FRAME_MAGIC,
		.length = htonl(length),
		.checksum = htonl(checksum(bytes + PAYLOAD_AT, length)),
	};

	memcpy(next, &frame, sizeof(frame));
	while (next < end) {
		ssize_t put = write(port, next, (size_t)(end - next));

		if (put > 0)
			next += put;
		else if (put == 0 || errno != EINTR)
			return false;
	}
	return true;
}

bool send_reply(void)
{
	return send_frame(out.bytes, out.used);
}

/* Send a short message, which is JSON as those of Python. */
bool send_text(const char *text)
{
	uint8_t bytes[128];
	size_t length = strlen(text);

	if (PAYLOAD_AT + length > sizeof(bytes))
		return false;
	memcpy(bytes + PAYLOAD_AT, text, length);
	return send_frame(bytes, PAYLOAD_AT + length);
}

static bool begin_reply(uint32_t results)
{
	struct reply reply = { REPLY_MAGIC, results, engine_request };
	uint8_t *bytes;

	out.used = PAYLOAD_AT;
	bytes = reserve(&out, sizeof(reply));
	if (!bytes)
		return false;
	memcpy(bytes, &reply, sizeof(reply));
	out.used += sizeof(reply);
	return true;
}

/* Whether the bytes received so far start like a frame. */
static bool magic_so_far(void)
{
	size_t received = in.used - FRAME_AT;

	return !memcmp(in.bytes + FRAME_AT, FRAME_MAGIC,
		       received < MAGIC_SIZE ? received : MAGIC_SIZE);
}

/* Read until the frame has at least `length` bytes. */
static enum event await(size_t length)
{
	while (in.used - FRAME_AT < length) {
		uint8_t *bytes = reserve(&in, length > ROOM ? length : ROOM);
		ssize_t got;

		if (!bytes)
			return NO_MEMORY;
		if (before_read && !before_read())
			return HOST_GONE;
		got = read(port, bytes, in.room - in.used);
		if (got > 0)
			in.used += (size_t)got;
		else if (got == 0 || errno != EINTR)
			return HOST_GONE;
		/* Check every byte at once: a whole header may never come. */
		if (!magic_so_far())
			return BAD_MAGIC;
	}
	return PERFORM;
}

/* Receive the next request; none of its calls are performed yet. */
enum event receive(void)
{
	const struct request *request;
	struct frame frame;
	uint32_t length;
	enum event event;

	if (frame_end) {
		in.used -= frame_end - FRAME_AT;
		memmove(in.bytes + FRAME_AT, in.bytes + frame_end, in.used - FRAME_AT);
		frame_end = 0;
		if (!magic_so_far())
			return BAD_MAGIC;
	}
	event = await(sizeof(frame));
	if (event)
		return event;
	memcpy(&frame, in.bytes + FRAME_AT, sizeof(frame));
	length = ntohl(frame.length);
	if (length > FRAME_LIMIT)
		return BAD_LENGTH;
	event = await(sizeof(frame) + length);
	if (event)
		return event;
	if (checksum(in.bytes + PAYLOAD_AT, length) != ntohl(frame.checksum))
		return BAD_CHECKSUM;
	frame_end = PAYLOAD_AT + length;
	rest = (struct rest){ in.bytes + PAYLOAD_AT, length };
	request = take(&rest, sizeof(*request));
	if (!request)
		return BAD_PAYLOAD;
	if (request->id <= engine_request)
		return BAD_ORDER;
	engine_request = request->id;
	watch_count = request->watches;
	watches = take(&rest, watch_count * sizeof(*watches));
	if (!watches)
		return BAD_PAYLOAD;
	calls_left = request->calls;
	return begin_reply(calls_left) ? PERFORM : NO_MEMORY;
}
