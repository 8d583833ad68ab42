// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of this process, as its own loads and stores meet it: also what a system call does not
 * find, such as a mapping of page frames (VM_PFNMAP), and without the hundreds of instructions that
 * process_vm_readv() takes for each place.  That is for the memory of others.
 */

#define _GNU_SOURCE
#include "native.h"

#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE_SIZE 4096

static sigjmp_buf refused_access;
static volatile sig_atomic_t guarded;

/* An access of ours is over; whatever else does this ends as it would without us. */
static void end_access(int number)
{
	if (guarded)
		siglongjmp(refused_access, 1);
	signal(number, SIG_DFL);
	/* Not raise(): a task may have no thread of the C library's. */
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

__attribute__((constructor)) static void guard(void)
{
	/* The jump puts no mask back, so there must be nothing in it. */
	struct sigaction action = { .sa_handler = end_access, .sa_flags = SA_NODEFER };

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}

static void begin_access(void)
{
	guarded = 1;
	atomic_signal_fence(memory_order_seq_cst);
}

static bool finish_access(bool whole)
{
	atomic_signal_fence(memory_order_seq_cst);
	guarded = 0;
	return whole;
}

/* Apart from sigsetjmp(), behind which what a function has changed is lost. */
static __attribute__((noinline)) void get(uint8_t *to, const struct watch *places, size_t count)
{
	for (const struct watch *end = places + count; places < end; places++) {
		memcpy(to, (const void *)places->where, places->length);
		to += places->length;
	}
}

/* Page by page: what lies before one that refuses is written. */
static __attribute__((noinline)) void put(uint64_t where, const uint8_t *bytes, size_t length)
{
	while (length) {
		size_t piece = PAGE_SIZE - where % PAGE_SIZE;

		if (piece > length)
			piece = length;
		memcpy((void *)where, bytes, piece);
		/* The compiler may not join two of them. */
		atomic_signal_fence(memory_order_seq_cst);
		where += piece;
		bytes += piece;
		length -= piece;
	}
}

/* Places, one behind the other; whether all of them could be read. */
bool load(uint8_t *to, const struct watch *places, size_t count)
{
	if (sigsetjmp(refused_access, 0))
		return finish_access(false);
	begin_access();
	get(to, places, count);
	return finish_access(true);
}

/* One of them; an error, or 0. */
int look_at_own(uint8_t *to, const struct watch *place)
{
	return load(to, place, 1) ? 0 : EFAULT;
}

/* One of another process, under the protections that a load would meet: unlike /proc/PID/mem. */
int look_into(uint8_t *to, const struct watch *place)
{
	struct iovec remote = { (void *)place->where, place->length };
	struct iovec local = { to, place->length };
	ssize_t got = process_vm_readv((pid_t)place->pid, &local, 1, &remote, 1, 0);

	if (got < 0)
		return errno;
	return (uint64_t)got == place->length ? 0 : EFAULT;
}

/* Whether all of it could be written. */
bool store(uint64_t where, const uint8_t *bytes, size_t length)
{
	if (sigsetjmp(refused_access, 0))
		return finish_access(false);
	begin_access();
	put(where, bytes, length);
	return finish_access(true);
}
