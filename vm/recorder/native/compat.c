// SPDX-License-Identifier: GPL-2.0
/* System calls of the 32-bit entry as those of x86-64. */

#include "recorder.h"

#include <asm/unistd_64.h>

/* arch/x86/entry/syscalls/syscall_32.tbl */
#define SOCKETCALL 102

/* The number on x86-64 of a call of the 32-bit entry; -1 for those without interest. */
static int native_number(int number)
{
	static const struct {
		int compat, native;
	} numbers[] = {
		{ 2, __NR_fork },	{ 3, __NR_read },
		{ 4, __NR_write },	{ 5, __NR_open },
		{ 6, __NR_close },	{ 8, __NR_creat },
		{ 11, __NR_execve },	{ 358, __NR_execveat },
		{ 19, __NR_lseek },	{ 41, __NR_dup },
		{ 54, __NR_ioctl },	{ 55, __NR_fcntl },
		{ 63, __NR_dup2 },	{ 120, __NR_clone },
		{ 172, __NR_prctl },	{ 354, __NR_seccomp },
		{ 145, __NR_readv },	{ 146, __NR_writev },
		{ 180, __NR_pread64 },	{ 181, __NR_pwrite64 },
		{ 187, __NR_sendfile }, { 190, __NR_vfork },
		{ 192, __NR_mmap },	{ 221, __NR_fcntl },
		{ 239, __NR_sendfile },	{ 245, __NR_io_setup },
		{ 295, __NR_openat },	{ 310, __NR_unshare },
		{ 313, __NR_splice },	{ 330, __NR_dup3 },
		{ 333, __NR_preadv },	{ 334, __NR_pwritev },
		{ 336, __NR_perf_event_open },
		{ 337, __NR_recvmmsg },	{ 345, __NR_sendmmsg },
		{ 370, __NR_sendmsg },	{ 372, __NR_recvmsg },
		{ 377, __NR_copy_file_range },
		{ 378, __NR_preadv2 },	{ 379, __NR_pwritev2 },
		/* _llseek */
		{ 140, __NR_lseek },
		/* recvmmsg_time64 */
		{ 417, __NR_recvmmsg },
	};

	for (size_t at = 0; at < sizeof(numbers) / sizeof(*numbers); at++)
		if (numbers[at].compat == number)
			return numbers[at].native;
	/* From 424 on they are the same. */
	return number >= 424 ? number : -1;
}

/* socketcall(2) has the call, and where its arguments are (include/uapi/linux/net.h). */
static int unpack_socketcall(struct task *task)
{
	static const int numbers[] = {
		[16] = __NR_sendmsg,
		[17] = __NR_recvmsg,
		[19] = __NR_recvmmsg,
		[20] = __NR_sendmmsg,
	};
	uint64_t *argument = task->call.arguments, call = argument[0], address = argument[1];

	if (call >= sizeof(numbers) / sizeof(*numbers) || !numbers[call])
		return -1;
	for (int at = 0; at < ARGUMENTS; at++)
		argument[at] = load_number(task->tid, address + 4 * (uint64_t)at, sizeof(uint32_t));
	return numbers[call];
}

/* Give a call of the 32-bit entry the number and the arguments that it has on x86-64. */
void translate_compat(struct task *task)
{
	struct call *call = &task->call;

	if (call->number == SOCKETCALL)
		call->number = unpack_socketcall(task);
	else
		call->number = native_number(call->number);
}
