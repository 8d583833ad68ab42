// SPDX-License-Identifier: GPL-2.0
/* Serve requests: perform the calls, capture the watched memory, reply. */

#define _GNU_SOURCE
#include "native.h"

#include <errno.h>
#include <string.h>

EXPORTED const uint32_t engine_version = VERSION;

static bool performing, unwatched;

static bool is_own(const struct watch *watch)
{
	return (pid_t)watch->pid == own_pid();
}

/* Append the content of one watched place to the reply. */
static enum watch_status capture(const struct watch *watch)
{
	uint8_t *to = out.bytes + out.used;

	switch (is_own(watch) ? read_own(to, watch) : read_other(to, watch)) {
	case 0:
		out.used += watch->length;
		return WATCH_READ;
	case EPERM:
		return WATCH_NOT_READ;
	case ESRCH:
		return WATCH_GONE;
	default:
		return WATCH_UNREADABLE;
	}
}

/*
 * Append the watched memory to the reply: one status byte (enum watch_status) per place, then the
 * bytes of those that were read.  A single load() suffices if all places are our own and readable.
 */
static bool capture_all(void)
{
	uint8_t *statuses;
	size_t total = 0, at;
	bool own = true;

	for (uint32_t i = 0; i < watch_count; i++) {
		total += watches[i].length;
		if (total > FRAME_LIMIT)
			return false;
		own = own && is_own(&watches[i]);
	}
	statuses = reserve(&out, aligned(watch_count) + aligned(total));
	if (!statuses)
		return false;
	at = out.used;
	out.used += aligned(watch_count);
	memset(statuses, unwatched ? WATCH_NOT_READ : WATCH_READ, watch_count);
	if (unwatched || !watch_count)
		return true;
	if (own && load(out.bytes + out.used, watches, watch_count)) {
		out.used = aligned(out.used + total);
		return true;
	}
	for (uint32_t i = 0; i < watch_count; i++)
		out.bytes[at + i] = (uint8_t)capture(&watches[i]);
	out.used = aligned(out.used);
	return true;
}

/* Append the result of a call; its data already follow the space reserved for the result. */
static bool append(const struct result *result)
{
	memcpy(out.bytes + out.used - sizeof(*result), result, sizeof(*result));
	if (result->length != NO_DATA)
		out.used += aligned(result->length);
	return capture_all();
}

/* Append the result of a call that engine_serve() left to Python. */
EXPORTED bool engine_append_result(int64_t value, uint32_t error, const void *bytes,
				   uint32_t length)
{
	struct result result = { value, error, length };

	if (length != NO_DATA) {
		uint8_t *data = reserve(&out, aligned(length));

		if (!data)
			return false;
		memcpy(data, bytes, length);
	}
	return append(&result);
}

EXPORTED void engine_begin(int descriptor)
{
	open_port(descriptor);
	performing = false;
}

/* Abandon the current request: skip its remaining calls and send no reply. */
EXPORTED void engine_drop_request(void)
{
	performing = false;
}

/* Perform the remaining calls of the request; DONE after the last one. */
static enum progress perform_all(void)
{
	while (calls_left) {
		const struct call *call = take(&rest, sizeof(*call));
		enum progress progress;
		struct rest body;
		struct result result;

		if (!call)
			return BAD;
		body.length = call->size;
		body.bytes = take(&rest, call->size);
		if (!body.bytes)
			return BAD;
		if (!reserve(&out, sizeof(result)))
			return LOST;
		out.used += sizeof(result);
		unwatched = call->flags & CALL_UNWATCHED;
		calls_left--;
		progress = perform(call->kind, body, &result);
		if (progress)
			return progress;
		if (!append(&result))
			return LOST;
	}
	return DONE;
}

/* Serve until Python has a call to perform or the conversation ends. */
EXPORTED enum event engine_serve(void)
{
	for (;;) {
		enum event event = performing ? PERFORM : receive();

		if (event)
			return event;
		performing = true;
		switch (perform_all()) {
		case LEFT:
			return PERFORM;
		case BAD:
			return BAD_PAYLOAD;
		case LOST:
			return NO_MEMORY;
		case BORN:
			performing = false;
			break;
		case DONE:
			performing = false;
			if (out.used - PAYLOAD_AT > FRAME_LIMIT)
				return TOO_LONG;
			if (!send_reply())
				return HOST_GONE;
		}
	}
}
