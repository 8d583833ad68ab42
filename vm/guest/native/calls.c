// SPDX-License-Identifier: GPL-2.0
/* Perform the calls of a request. */

#define _GNU_SOURCE
#include "native.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Sizes of the first and of later reads.  Some files make the kernel allocate and clear a buffer of
 * the requested size (proc_sys_call_handler), so the first read is small.
 */
#define FIRST_READ ((size_t)1 << 12)
#define LATER_READ ((size_t)1 << 16)
/* Room for a 64-bit decimal number. */
#define NUMBER_LIMIT 32
/* Room for a mode and two 32-bit ids. */
#define STATUS_LIMIT 64
#define MOST_ARGUMENTS 6

/* Descriptors by slot, plus 1; 0 is an empty slot. */
EXPORTED int32_t engine_slots[SLOTS];
/* One past the highest slot ever used. */
EXPORTED uint32_t engine_slots_end;
/* The call left to Python. */
EXPORTED struct {
	uint64_t length;
	const uint8_t *bytes;
} engine_pending;

/* Take a NUL-terminated string, the last item of a call. */
static const char *take_text(struct rest *from)
{
	const char *text = (const char *)from->bytes;

	return memchr(text, 0, from->length) ? text : NULL;
}

static void keep(size_t slot, int32_t descriptor)
{
	engine_slots[slot] = descriptor + 1;
	if (engine_slots_end <= slot)
		engine_slots_end = (uint32_t)slot + 1;
}

static enum progress perform_syscall(struct rest body, struct result *result)
{
	const struct syscall *call = take(&body, sizeof(*call));
	uint64_t plain[MOST_ARGUMENTS] = { 0 };
	const uint8_t *answer = NULL;
	size_t size = 0;

	if (!call || call->arguments > MOST_ARGUMENTS || call->slot >= SLOTS)
		return BAD;
	for (uint32_t i = 0; i < call->arguments; i++) {
		const struct argument *argument = take(&body, sizeof(*argument));

		if (!argument)
			return BAD;
		switch (argument->kind) {
		case ARGUMENT_PLAIN:
			plain[i] = argument->value;
			break;
		case ARGUMENT_DESCRIPTOR:
			if (argument->value >= SLOTS)
				return BAD;
			if (!engine_slots[argument->value]) {
				*result = refused(EBADF);
				return DONE;
			}
			plain[i] = (uint64_t)engine_slots[argument->value] - 1;
			break;
		case ARGUMENT_IN:
			plain[i] = (uint64_t)take(&body, argument->value);
			if (!plain[i])
				return BAD;
			break;
		case ARGUMENT_OUT:
			size = argument->value;
			if (answer || size > FRAME_LIMIT)
				return BAD;
			answer = reserve(&out, aligned(size));
			if (!answer) {
				*result = refused(ENOMEM);
				return DONE;
			}
			/* Clear the previous reply, and fault all pages in. */
			memset((void *)answer, 0, size);
			plain[i] = (uint64_t)answer;
			break;
		default:
			return BAD;
		}
	}
	*result = answered(syscall((long)call->number, plain[0], plain[1], plain[2], plain[3],
				   plain[4], plain[5]));
	if (call->slot >= 0) {
		/* A failed call leaves the slot empty: an earlier program may have used it. */
		keep((size_t)call->slot, result->error ? -1 : (int32_t)result->value);
		if (!result->error)
			result->value = 0;
	}
	if (answer && result->value > 0)
		result->length =
			(uint32_t)((size_t)result->value < size ? (size_t)result->value : size);
	return DONE;
}

/* Read memory into the reply. */
static struct result peek(const struct watch *place, int (*reader)(uint8_t *, const struct watch *))
{
	uint8_t *bytes = NULL;
	int error = ENOMEM;

	if (place->length <= FRAME_LIMIT)
		bytes = reserve(&out, aligned(place->length));
	if (bytes)
		error = reader(bytes, place);
	if (error)
		return refused(error);
	return (struct result){ (int64_t)place->length, 0, (uint32_t)place->length };
}

static struct result poke(uint64_t where, const void *bytes, uint64_t length)
{
	if (!store(where, bytes, length))
		return refused(EFAULT);
	return (struct result){ (int64_t)length, 0, NO_DATA };
}

/* Read a file into the reply, at most `limit` bytes. */
static struct result slurp(const char *path, uint64_t limit)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = out.used, piece = FIRST_READ;
	int64_t got = 0;
	int error;

	if (file < 0)
		return refused(errno);
	do {
		size_t wanted = limit - (out.used - used);
		uint8_t *bytes = reserve(&out, piece);

		if (wanted > piece)
			wanted = piece;
		if (!wanted)
			break;
		errno = ENOMEM;
		got = bytes ? read(file, bytes, wanted) : -1;
		if (got > 0)
			out.used += (size_t)got;
		if (got == (int64_t)FIRST_READ)
			piece = LATER_READ;
	} while (got > 0);
	error = errno;
	close(file);
	got = got < 0 ? -1 : (int64_t)(out.used - used);
	out.used = used;
	return got < 0 ? refused(error) : (struct result){ got, 0, (uint32_t)got };
}

static struct result spill(const char *path, const void *bytes, size_t length, uint64_t flags)
{
	int file = open(path, (int)flags | O_CLOEXEC, 0644);
	struct result result;

	if (file < 0)
		return refused(errno);
	/* Only -1 is an error: write() of a tracing file may return other negative values. */
	result = answered(write(file, bytes, length));
	close(file);
	return result;
}

/* Parse the decimal number in a file; EINVAL if there is none. */
static struct result read_number(const char *path, uint64_t *number)
{
	struct result result = slurp(path, NUMBER_LIMIT);
	const uint8_t *digits, *end;

	if (result.error)
		return result;
	digits = out.bytes + out.used;
	end = digits + result.value;
	while (end > digits && (end[-1] == '\n' || end[-1] == ' '))
		end--;
	if (digits == end)
		return refused(EINVAL);
	for (*number = 0; digits < end; digits++) {
		if (*digits < '0' || *digits > '9')
			return refused(EINVAL);
		*number = *number * 10 + (*digits - '0');
	}
	return (struct result){ 0, 0, NO_DATA };
}

/* List the names in a directory, one per line. */
static struct result list(const char *path)
{
	DIR *directory = opendir(path);
	const struct dirent *entry;
	size_t used = out.used;
	struct result result;

	if (!directory)
		return refused(errno);
	while (errno = 0, entry = readdir(directory)) {
		size_t length = strlen(entry->d_name);
		uint8_t *line;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		line = reserve(&out, length + 1);
		if (!line) {
			errno = ENOMEM;
			break;
		}
		memcpy(line, entry->d_name, length);
		line[length] = '\n';
		out.used += length + 1;
	}
	result = (struct result){ (int64_t)(out.used - used), 0, (uint32_t)(out.used - used) };
	if (errno)
		result = refused(errno);
	closedir(directory);
	out.used = used;
	return result;
}

/* Format mode, owner and group of a path. */
static struct result status(const char *path)
{
	char *text = (char *)reserve(&out, STATUS_LIMIT);
	struct stat found;
	int length;

	if (!text)
		return refused(ENOMEM);
	if (stat(path, &found))
		return refused(errno);
	length =
		snprintf(text, STATUS_LIMIT, "%o %u:%u", found.st_mode, found.st_uid, found.st_gid);
	return (struct result){ length, 0, (uint32_t)length };
}

/* Store the descriptor of a slot in memory. */
static struct result put_descriptor(const struct place *place)
{
	int32_t number = engine_slots[place->length] - 1;

	return number < 0 ? refused(EBADF) : poke(place->where, &number, sizeof(number));
}

/* Load a descriptor from memory into a slot. */
static struct result take_descriptor(const struct place *place)
{
	const struct watch held = { .where = place->where, .length = sizeof(int32_t) };
	struct result result = peek(&held, read_own);
	int32_t number;

	if (result.error)
		return result;
	memcpy(&number, out.bytes + out.used, sizeof(number));
	keep(place->length, number);
	return (struct result){ 0, 0, NO_DATA };
}

/* Calls that take an address, and a length or a slot. */
static enum progress perform_place(enum call_kind kind, struct rest body, struct result *result)
{
	const struct place *place = take(&body, sizeof(*place));
	const void *bytes = NULL;
	struct watch own;

	if (!place)
		return BAD;
	switch (kind) {
	case CALL_PEEK:
		own = (struct watch){ .where = place->where, .length = place->length };
		*result = peek(&own, read_own);
		return DONE;
	case CALL_POKE:
		bytes = take(&body, place->length);
		if (!bytes)
			return BAD;
		*result = poke(place->where, bytes, place->length);
		return DONE;
	default:
		if (place->length >= SLOTS)
			return BAD;
		*result = kind == CALL_PUT_FD ? put_descriptor(place) : take_descriptor(place);
		return DONE;
	}
}

/* Calls that take a path. */
static enum progress perform_file(enum call_kind kind, struct rest body, struct result *result)
{
	const struct file *file = take(&body, sizeof(*file));
	const void *bytes = file ? take(&body, file->length) : NULL;
	const char *path = bytes ? take_text(&body) : NULL;
	uint64_t number;
	char pid[NUMBER_LIMIT];

	if (!path)
		return BAD;
	switch (kind) {
	case CALL_SLURP:
		*result = slurp(path, file->flags);
		return DONE;
	case CALL_LIST:
		*result = list(path);
		return DONE;
	case CALL_STATUS:
		*result = status(path);
		return DONE;
	case CALL_SPILL:
		*result = spill(path, bytes, file->length, file->flags);
		return DONE;
	case CALL_SPILL_PID:
		snprintf(pid, sizeof(pid), "%d", getpid());
		*result = spill(path, pid, strlen(pid), file->flags);
		return DONE;
	default:
		*result = read_number(path, &number);
		if (!result->error)
			*result = poke(file->flags, &number, sizeof(number));
		return DONE;
	}
}

enum progress perform(enum call_kind kind, struct rest body, struct result *result)
{
	const struct process *process;
	const struct watch *watch;
	const char *name;

	switch (kind) {
	case CALL_SYS:
		return perform_syscall(body, result);
	case CALL_PEEK:
	case CALL_POKE:
	case CALL_PUT_FD:
	case CALL_TAKE_FD:
		return perform_place(kind, body, result);
	case CALL_SLURP:
	case CALL_SPILL:
	case CALL_SPILL_PID:
	case CALL_NUMBER:
	case CALL_LIST:
	case CALL_STATUS:
		return perform_file(kind, body, result);
	case CALL_LOOK:
		watch = take(&body, sizeof(*watch));
		if (!watch)
			return BAD;
		*result = peek(watch, read_other);
		return DONE;
	case CALL_KILL:
		process = take(&body, sizeof(*process));
		if (!process)
			return BAD;
		*result = end_process((pid_t)process->pid, (int)process->signal);
		return DONE;
	case CALL_SPAWN:
		name = take_text(&body);
		if (!name)
			return BAD;
		return spawn(name, result);
	case CALL_OTHER:
		engine_pending.length = body.length;
		engine_pending.bytes = body.bytes;
		return LEFT;
	}
	return BAD;
}
