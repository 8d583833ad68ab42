// SPDX-License-Identifier: GPL-2.0
/* Which calls are written down, and what they read and write. */

#define _GNU_SOURCE
#include "recorder.h"

#include <asm/unistd_64.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

/* include/uapi/linux/user_events.h */
#define DIAG_IOC_MAGIC '*'
#define DIAG_REG 0
#define DIAG_DEL 1
#define DIAG_UNREG 2
#define USER_REG_SIZE 28
#define USER_UNREG_SIZE 16
#define ENABLE_ADDR_OFFSET 8
#define WRITE_INDEX_SIZE 4
/* MAX_EVENT_DESC */
#define LONGEST_STRING 512
/* Most bytes of a payload that are recorded: much more than a record can hold. */
#define LONGEST_PAYLOAD (256u << 10)
#define MOST_IOVECS 1024
#define LONGEST_READ (64u << 10)

/* Where name_args is in struct user_reg. */
unsigned int name_offset = 16;

static bool mentions_tracefs(pid_t tid, uint64_t path)
{
	char text[512];
	size_t count = read_memory(tid, path, text, sizeof(text) - 1);

	text[count] = '\0';
	return strstr(text, "tracing") || strstr(text, "user_events");
}

uint64_t clone_flags(const struct task *task)
{
	const struct call *call = &task->call;

	switch (call->number) {
	case __NR_vfork:
		return CLONE_VM | CLONE_VFORK;
	case __NR_clone:
		return call->arguments[0];
	case __NR_clone3:
		return load_number(task->tid, call->arguments[0], sizeof(uint64_t));
	}
	return 0;
}

/* Whether a call copies memory and enable words to a new process. */
bool makes_copy(const struct task *task)
{
	switch (task->call.number) {
	case __NR_fork:
		return true;
	case __NR_clone:
	case __NR_clone3:
		return !(clone_flags(task) & CLONE_VM);
	}
	return false;
}

/* The descriptor that a call writes to or maps. */
static int descriptor_of(const struct call *call)
{
	switch (call->number) {
	case __NR_splice:
	case __NR_copy_file_range:
		return (int)call->arguments[2];
	case __NR_mmap:
		return (int)call->arguments[4];
	}
	return (int)call->arguments[0];
}

enum interest interest_of(struct task *task, bool *exclusive)
{
	const uint64_t *argument = task->call.arguments;
	int descriptor = descriptor_of(&task->call);
	pid_t tid = task->tid;
	uint64_t type;

	*exclusive = false;
	switch (task->call.number) {
	case __NR_open:
	case __NR_creat:
		*exclusive = mentions_tracefs(tid, argument[0]);
		return ON_EXIT;
	case __NR_openat:
	case __NR_openat2:
		*exclusive = mentions_tracefs(tid, argument[1]);
		return ON_EXIT;
	case __NR_ioctl:
	case __NR_write:
	case __NR_pwrite64:
	case __NR_writev:
	case __NR_pwritev:
	case __NR_pwritev2:
	case __NR_close:
	case __NR_dup:
	case __NR_fcntl:
	case __NR_lseek:
	case __NR_sendfile:
	case __NR_splice:
	case __NR_copy_file_range:
		*exclusive = is_tracefs(tid, descriptor);
		break;
	case __NR_dup2:
	case __NR_dup3:
		*exclusive = is_tracefs(tid, (int)argument[0]) || is_tracefs(tid, (int)argument[1]);
		break;
	case __NR_mmap:
		*exclusive = !(argument[3] & MAP_ANONYMOUS) && is_tracefs(tid, descriptor);
		break;
	case __NR_close_range:
		*exclusive = true;
		break;
	case __NR_read:
	case __NR_pread64:
	case __NR_readv:
	case __NR_preadv:
	case __NR_preadv2:
	case __NR_recvmsg:
	case __NR_recvmmsg:
	case __NR_sendmsg:
	case __NR_sendmmsg:
	case __NR_pidfd_getfd:
	case __NR_io_setup:
	case __NR_io_uring_setup:
		return ON_EXIT;
	case __NR_perf_event_open:
		type = load_number(tid, argument[0], sizeof(uint32_t));
		return type == PERF_TYPE_TRACEPOINT ? ON_EXIT : IGNORED;
	case __NR_prctl:
		return argument[0] == PR_SET_SECCOMP && argument[1] == SECCOMP_MODE_FILTER ?
			       ON_EXIT : IGNORED;
	case __NR_seccomp:
		return argument[0] == SECCOMP_SET_MODE_FILTER ? ON_EXIT : IGNORED;
	case __NR_fork:
	case __NR_clone:
	case __NR_clone3:
		*exclusive = makes_copy(task);
		return ON_EVENT;
	case __NR_execve:
	case __NR_execveat:
		/* It releases memory and descriptors. */
		*exclusive = true;
		return ON_EVENT;
	case __NR_unshare:
		*exclusive = argument[0] & CLONE_FILES;
		return *exclusive ? ON_EXIT : IGNORED;
	default:
		return IGNORED;
	}
	return *exclusive ? ON_ENTRY : IGNORED;
}

/* Before 6.4 there are no enable words: the name is where 6.4 has their address. */
static bool has_word(void)
{
	return name_offset > ENABLE_ADDR_OFFSET;
}

/* struct user_reg or struct user_unreg, the name of the former, and the word. */
static void write_structure(pid_t tid, uint64_t address, bool registers)
{
	size_t size = load_number(tid, address, sizeof(uint32_t));
	size_t least = registers ? USER_REG_SIZE : USER_UNREG_SIZE;
	uint64_t word = load_number(tid, address + ENABLE_ADDR_OFFSET, sizeof(uint64_t));

	if (size < least)
		size = least;
	write_memory(tid, address, size < PAGE_SIZE ? size : PAGE_SIZE);
	if (registers) {
		write_rights(tid, address);
		write_string(tid, load_number(tid, address + name_offset, sizeof(uint64_t)),
			     LONGEST_STRING);
	}
	if (!has_word())
		return;
	write_memory(tid, word, WORD);
	write_rights(tid, word);
}

static void write_ioctl(pid_t tid, uint32_t request, uint64_t address)
{
	if ((request >> 8 & 0xff) != DIAG_IOC_MAGIC)
		return;
	switch (request & 0xff) {
	case DIAG_REG:
	case DIAG_UNREG:
		write_structure(tid, address, (request & 0xff) == DIAG_REG);
		break;
	case DIAG_DEL:
		write_string(tid, address, LONGEST_STRING);
		break;
	}
}

static void write_payload(pid_t tid, uint64_t address, uint64_t length)
{
	write_memory(tid, address, length < LONGEST_PAYLOAD ? length : LONGEST_PAYLOAD);
}

static void write_vector(const struct task *task, uint64_t address, uint64_t count)
{
	size_t size = task->call.compat ? sizeof(uint32_t) : sizeof(uint64_t);

	if (count > MOST_IOVECS)
		return;
	write_memory(task->tid, address, count * 2 * size);
	for (uint64_t at = 0; at < count; at++) {
		uint64_t part = address + at * 2 * size;

		write_payload(task->tid, load_number(task->tid, part, size),
			      load_number(task->tid, part + size, size));
	}
}

void write_call(const struct task *task)
{
	const struct call *call = &task->call;

	say("call %d %d %d %d", task->tid, task->tgid, call->number, call->compat);
	for (int at = 0; at < ARGUMENTS; at++)
		say(" %" PRIx64, call->arguments[at]);
	say("\n");
}

/* A call with its result. */
void write_returned(const struct task *task, int64_t result)
{
	write_call(task);
	say("exit %d %" PRId64 "\n", task->tid, result);
}

/* The data of a write. */
static void write_data(const struct task *task)
{
	const uint64_t *argument = task->call.arguments;

	switch (task->call.number) {
	case __NR_write:
	case __NR_pwrite64:
		write_payload(task->tid, argument[1], argument[2]);
		break;
	case __NR_writev:
	case __NR_pwritev:
	case __NR_pwritev2:
		write_vector(task, argument[1], argument[2]);
		break;
	}
}

void write_entry(struct task *task)
{
	const uint64_t *argument = task->call.arguments;

	write_call(task);
	if (task->call.number != __NR_close_range)
		write_file(task->tid, descriptor_of(&task->call));
	if (task->call.number == __NR_ioctl) {
		write_credentials(task->tid);
		write_ioctl(task->tid, (uint32_t)argument[1], argument[2]);
		flush_output();
		return;
	}
	write_data(task);
	flush_now_and_then();
}

/* What the kernel has stored, and what enabling the event then changes. */
static void write_ioctl_results(struct task *task, int64_t result)
{
	uint64_t address = task->call.arguments[2];
	uint32_t request = (uint32_t)task->call.arguments[1];
	uint64_t word = load_number(task->tid, address + ENABLE_ADDR_OFFSET, sizeof(uint64_t));

	if ((request >> 8 & 0xff) != DIAG_IOC_MAGIC || (request & 0xff) == DIAG_DEL)
		return;
	if (has_word())
		write_memory(task->tid, word, WORD);
	if ((request & 0xff) != DIAG_REG)
		return;
	write_memory(task->tid, address, USER_REG_SIZE);
	if (result)
		return;
	if (has_word())
		add_word(task->tgid, word);
	listen_to(task, load_number(task->tid, address + name_offset, sizeof(uint64_t)));
	if (has_word())
		write_memory(task->tid, word, WORD);
}

static void write_open(struct task *task, int64_t result)
{
	bool at = task->call.number == __NR_openat || task->call.number == __NR_openat2;
	uint64_t path = task->call.arguments[at ? 1 : 0];

	if (result >= 0 ? !is_tracefs(task->tid, (int)result) : !mentions_tracefs(task->tid, path))
		return;
	write_call(task);
	write_credentials(task->tid);
	write_string(task->tid, path, PAGE_SIZE);
	if (task->call.number == __NR_openat2)
		write_memory(task->tid, task->call.arguments[2], sizeof(struct open_how));
	say("exit %d %" PRId64 "\n", task->tid, result);
	if (result >= 0)
		write_file(task->tid, (int)result);
}

static void write_read(struct task *task, int64_t result)
{
	bool vector = task->call.number != __NR_read && task->call.number != __NR_pread64;
	size_t count = result > 0 ? (size_t)result : 0;

	if (!is_tracefs(task->tid, (int)task->call.arguments[0]))
		return;
	write_call(task);
	write_file(task->tid, (int)task->call.arguments[0]);
	say("exit %d %" PRId64 "\n", task->tid, result);
	if (!vector)
		write_memory(task->tid, task->call.arguments[1],
			     count < LONGEST_READ ? count : LONGEST_READ);
}

static void write_late(struct task *task, int64_t result)
{
	switch (task->call.number) {
	case __NR_open:
	case __NR_creat:
	case __NR_openat:
	case __NR_openat2:
		write_open(task, result);
		break;
	case __NR_read:
	case __NR_pread64:
	case __NR_readv:
	case __NR_preadv:
	case __NR_preadv2:
		write_read(task, result);
		break;
	case __NR_sendmsg:
	case __NR_sendmmsg:
	case __NR_recvmsg:
	case __NR_recvmmsg:
		write_messages(task, result);
		break;
	case __NR_pidfd_getfd:
		if (result < 0 || !is_tracefs(task->tid, (int)result))
			break;
		write_returned(task, result);
		write_file(task->tid, (int)result);
		break;
	default:
		write_returned(task, result);
	}
}

/* A call on a closed descriptor; whether that was one of tracefs is known to the reader. */
static void write_closed(struct task *task, int64_t result)
{
	switch (task->call.number) {
	case __NR_ioctl:
	case __NR_write:
	case __NR_pwrite64:
	case __NR_writev:
	case __NR_pwritev:
	case __NR_pwritev2:
	case __NR_close:
		if (result != -EBADF)
			return;
		write_returned(task, result);
	}
}

void write_exit(struct task *task, int64_t result)
{
	switch (task->interest) {
	case ON_ENTRY:
		say("exit %d %" PRId64 "\n", task->tid, result);
		if (task->call.number == __NR_ioctl) {
			write_ioctl_results(task, result);
		} else if (task->call.number != __NR_close) {
			/* Another task may have changed them before the kernel read them. */
			write_data(task);
			collect_records();
		}
		break;
	case ON_EXIT:
		write_late(task, result);
		break;
	case IGNORED:
		write_closed(task, result);
		break;
	case ON_EVENT:
		/* This one has no event, and no creator that could be followed. */
		if (result > 0 && clone_flags(task) & CLONE_UNTRACED)
			say("stranger %" PRId64 "\n", result);
		break;
	}
}
