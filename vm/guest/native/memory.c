// SPDX-License-Identifier: GPL-2.0
/*
 * Access to watched memory.  Own memory is read and written with plain loads and stores under a
 * SIGSEGV handler: this also reaches mappings of page frames (VM_PFNMAP), and saves the hundreds of
 * instructions of process_vm_readv(), which serves the memory of other processes.
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

static sigjmp_buf access_fault;
static volatile sig_atomic_t guarded;

/* Abort a guarded access.  Any other fault kills the process as usual. */
static void handle_fault(int number)
{
	if (guarded)
		siglongjmp(access_fault, 1);
	signal(number, SIG_DFL);
	/* Not raise(): a task has no thread control block of libc. */
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

__attribute__((constructor)) static void guard(void)
{
	/* SA_NODEFER: siglongjmp() restores no signal mask here. */
	struct sigaction action = { .sa_handler = handle_fault, .sa_flags = SA_NODEFER };

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

/* A function of its own: locals changed after sigsetjmp() are lost on a fault. */
static __attribute__((noinline)) void get(uint8_t *to, const struct watch *places, size_t count)
{
	for (const struct watch *end = places + count; places < end; places++) {
		memcpy(to, (const void *)places->where, places->length);
		to += places->length;
	}
}

/* Page by page: the pages before one that faults are written. */
static __attribute__((noinline)) void put(uint64_t where, const uint8_t *bytes, size_t length)
{
	while (length) {
		size_t piece = PAGE_SIZE - where % PAGE_SIZE;

		if (piece > length)
			piece = length;
		memcpy((void *)where, bytes, piece);
		/* Keep the compiler from merging the copies. */
		atomic_signal_fence(memory_order_seq_cst);
		where += piece;
		bytes += piece;
		length -= piece;
	}
}

/* Read several places into one buffer; whether all were readable. */
bool load(uint8_t *to, const struct watch *places, size_t count)
{
	if (sigsetjmp(access_fault, 0))
		return finish_access(false);
	begin_access();
	get(to, places, count);
	return finish_access(true);
}

/* Read own memory; 0 or EFAULT. */
int read_own(uint8_t *to, const struct watch *place)
{
	return load(to, place, 1) ? 0 : EFAULT;
}

/* Read memory of another process; 0 or errno.  Unlike /proc/PID/mem it honours protections. */
int read_other(uint8_t *to, const struct watch *place)
{
	struct iovec remote = { (void *)place->where, place->length };
	struct iovec local = { to, place->length };
	ssize_t got = process_vm_readv((pid_t)place->pid, &local, 1, &remote, 1, 0);

	if (got < 0)
		return errno;
	return (uint64_t)got == place->length ? 0 : EFAULT;
}

/* Write own memory; whether all of it was writable. */
bool store(uint64_t where, const uint8_t *bytes, size_t length)
{
	if (sigsetjmp(access_fault, 0))
		return finish_access(false);
	begin_access();
	put(where, bytes, length);
	return finish_access(true);
}
