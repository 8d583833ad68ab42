// SPDX-License-Identifier: GPL-2.0
/* Tracefs descriptors that messages carry: SCM_RIGHTS of sendmsg(2) and recvmsg(2). */

#include "recorder.h"

#include <asm/unistd_64.h>
#include <string.h>
#include <sys/socket.h>

#define LONGEST_CONTROL 4096
/* UIO_MAXIOV */
#define MOST_MESSAGES 1024

/* Pointers and lengths of a message; those of a 32-bit caller are smaller (net/compat.c). */
static size_t word_size(const struct task *task)
{
	return task->call.compat ? sizeof(uint32_t) : sizeof(uint64_t);
}

/* Returns whether the call is written down now. */
static bool write_passed(struct task *task, const char *data, size_t length, int64_t result,
			 bool written)
{
	for (int fd; length >= sizeof(fd); data += sizeof(fd), length -= sizeof(fd)) {
		memcpy(&fd, data, sizeof(fd));
		if (!is_tracefs(task->tid, fd))
			continue;
		if (!written)
			write_returned(task, result);
		written = true;
		write_file(task->tid, fd);
	}
	return written;
}

/* struct msghdr: control data and its length are the fifth and the sixth word. */
static void write_message(struct task *task, uint64_t address, int64_t result)
{
	size_t word = word_size(task), header = word + 2 * sizeof(int), at, part;
	uint64_t control = load_number(task->tid, address + 4 * word, word);
	uint64_t length = load_number(task->tid, address + 5 * word, word);
	char bytes[LONGEST_CONTROL];
	bool written = false;

	if (!control || length > sizeof(bytes))
		return;
	length = read_memory(task->tid, control, bytes, length);
	for (at = 0; at + header <= length; at += (part + word - 1) & ~(word - 1)) {
		int kind[2];

		part = 0;
		memcpy(&part, bytes + at, word);
		/* The kernel refuses the message: CMSG_OK(). */
		if (part < header || part > length - at)
			break;
		memcpy(kind, bytes + at + word, sizeof(kind));
		if (kind[0] == SOL_SOCKET && kind[1] == SCM_RIGHTS)
			written = write_passed(task, bytes + at + header, part - header,
					       result, written);
	}
}

static void write_each(struct task *task, uint64_t count, int64_t result)
{
	uint64_t address = task->call.arguments[1];

	/* struct mmsghdr has eight words. */
	for (uint64_t at = 0; at < count && at < MOST_MESSAGES; at++)
		write_message(task, address + at * 8 * word_size(task), result);
}

static uint64_t messages_to_send(const struct task *task)
{
	return task->call.number == __NR_sendmmsg ? task->call.arguments[2] : 1;
}

/* At the entry: a receiver may return before the sender. */
void write_sent(struct task *task)
{
	if (task->call.number == __NR_sendmsg || task->call.number == __NR_sendmmsg)
		write_each(task, messages_to_send(task), 0);
}

/* At the exit: what was received, or was not sent. */
void write_messages(struct task *task, int64_t result)
{
	switch (task->call.number) {
	case __NR_sendmsg:
	case __NR_sendmmsg:
		/* It was written as a success. */
		if (result < 0)
			write_each(task, messages_to_send(task), result);
		break;
	case __NR_recvmsg:
		write_each(task, result >= 0, result);
		break;
	case __NR_recvmmsg:
		write_each(task, result > 0 ? (uint64_t)result : 0, result);
		break;
	}
}
