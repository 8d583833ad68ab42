// SPDX-License-Identifier: GPL-2.0
/* One request after the other. */

#define _GNU_SOURCE
#include "native.h"

#include <errno.h>
#include <string.h>

EXPORTED const uint32_t engine_version = VERSION;

static bool performing, unseen;

static bool is_own(const struct watch *watch)
{
	return (pid_t)watch->pid == own_pid();
}

/* One place that is watched, behind what was seen so far. */
static enum look look_at(const struct watch *watch)
{
	uint8_t *to = out.bytes + out.used;

	switch (is_own(watch) ? look_at_own(to, watch) : look_into(to, watch)) {
	case 0:
		out.used += watch->length;
		return SEEN;
	case EPERM:
		return NOT_LOOKED_AT;
	case ESRCH:
		return GONE;
	default:
		return UNREADABLE;
	}
}

/*
 * All that is watched: first a byte for each place, how it was looked at, and then what is in those
 * that were SEEN.  At once where all are memory of our own, and readable.
 */
static bool look(void)
{
	uint8_t *hows;
	size_t total = 0, at;
	bool own = true;

	for (uint32_t i = 0; i < watch_count; i++) {
		total += watches[i].length;
		if (total > FRAME_LIMIT)
			return false;
		own = own && is_own(&watches[i]);
	}
	hows = reserve(&out, aligned(watch_count) + aligned(total));
	if (!hows)
		return false;
	at = out.used;
	out.used += aligned(watch_count);
	memset(hows, unseen ? NOT_LOOKED_AT : SEEN, watch_count);
	if (unseen || !watch_count)
		return true;
	if (own && load(out.bytes + out.used, watches, watch_count)) {
		out.used = aligned(out.used + total);
		return true;
	}
	for (uint32_t i = 0; i < watch_count; i++)
		out.bytes[at + i] = (uint8_t)look_at(&watches[i]);
	out.used = aligned(out.used);
	return true;
}

/* What a call came to; its data are behind the room for that. */
static bool note(const struct result *result)
{
	memcpy(out.bytes + out.used - sizeof(*result), result, sizeof(*result));
	if (result->length != NO_DATA)
		out.used += aligned(result->length);
	return look();
}

/* What the call came to that engine_serve() had left, with so many bytes of data or NO_DATA. */
EXPORTED bool engine_note(int64_t value, uint32_t error, const void *bytes, uint32_t length)
{
	struct result result = { value, error, length };

	if (length != NO_DATA) {
		uint8_t *data = reserve(&out, aligned(length));

		if (!data)
			return false;
		memcpy(data, bytes, length);
	}
	return note(&result);
}

/* Serve a port from its beginning: nothing has come, nothing is being performed. */
EXPORTED void engine_begin(int descriptor)
{
	open_port(descriptor);
	performing = false;
}

/* The calls that are left are not performed, and those that were are not answered. */
EXPORTED void engine_drop(void)
{
	performing = false;
}

/* The calls of a request that are left; DONE when all were performed. */
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
		unseen = call->flags & UNSEEN;
		calls_left--;
		progress = perform(call->kind, body, &result);
		if (progress)
			return progress;
		if (!note(&result))
			return LOST;
	}
	return DONE;
}

/* Serve until there is something for somebody else to do, or to know. */
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
