// SPDX-License-Identifier: GPL-2.0
/* Follow a program and all of its tasks, and end as the program does. */

#define _GNU_SOURCE
#include "recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/audit.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* sys/ptrace.h and linux/ptrace.h exclude each other. */
long ptrace(int request, ...);

#define OPTIONS                                                                                  \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | \
	 PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL)
#define SYSCALL_STOP (SIGTRAP | 0x80)
/* Seconds after which a call that does not return may be overtaken. */
#define PATIENCE 1

static struct task *all;
static pid_t program;
static int program_status;
static bool recording;

struct task *tasks(void)
{
	return all;
}

struct task *find_task(pid_t tid)
{
	struct task *task = all;

	while (task && task->tid != tid)
		task = task->next;
	return task;
}

static struct task *add_task(pid_t tid)
{
	struct task *task = calloc(1, sizeof(*task));

	if (!task)
		give_up("memory");
	task->tid = task->tgid = tid;
	task->next = all;
	all = task;
	return task;
}

static void remove_task(struct task *task)
{
	struct task **link = &all;

	while (*link != task)
		link = &(*link)->next;
	*link = task->next;
	drop_from_turn(task);
	free(task);
}

/* A task that is killed at this moment is reported by the next wait. */
void resume(struct task *task, int signal)
{
	task->stopped = false;
	ptrace(PTRACE_SYSCALL, task->tid, NULL, (void *)(long)signal);
}

static void enter_call(struct task *task, const struct ptrace_syscall_info *info)
{
	bool exclusive;

	task->in_call = true;
	task->interest = IGNORED;
	task->call.compat = info->arch == AUDIT_ARCH_I386;
	task->call.number = (int)info->entry.nr;
	for (int at = 0; at < ARGUMENTS; at++)
		task->call.arguments[at] = info->entry.args[at];
	if (task->call.compat)
		translate_compat(task);
	if (recording) {
		task->interest = interest_of(task, &exclusive);
		write_sent(task);
	}
	if (task->interest != IGNORED && exclusive) {
		if (!take_turn(task))
			return;
		if (task->interest == ON_ENTRY)
			write_entry(task);
	}
	resume(task, 0);
}

static void leave_call(struct task *task, int64_t result)
{
	if (task->in_call && recording)
		write_exit(task, result);
	task->in_call = false;
	task->interest = IGNORED;
	resume(task, 0);
	end_turn(task);
}

static void syscall_stop(struct task *task)
{
	struct ptrace_syscall_info info;
	long size = ptrace(PTRACE_GET_SYSCALL_INFO, task->tid, (void *)sizeof(info), &info);

	if (size <= 0)
		resume(task, 0);
	else if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
		enter_call(task, &info);
	else
		leave_call(task, info.op == PTRACE_SYSCALL_INFO_EXIT ? info.exit.rval : 0);
}

static unsigned long message_of(const struct task *task)
{
	unsigned long message = 0;

	ptrace(PTRACE_GETEVENTMSG, task->tid, NULL, &message);
	return message;
}

static void forked(struct task *parent)
{
	pid_t tid = (pid_t)message_of(parent);
	uint64_t flags = clone_flags(parent);
	struct task *child = find_task(tid);

	if (!child)
		child = add_task(tid);
	child->known = true;
	child->tgid = flags & CLONE_THREAD ? parent->tgid : tid;
	if (recording) {
		say("fork %d %d %d %" PRIx64 "\n", parent->tid, tid, child->tgid, flags);
		if (!(flags & CLONE_VM)) {
			inherit_words(parent->tgid, tid);
			write_words(child, tid);
		}
	}
	if (child->stopped)
		resume(child, 0);
	resume(parent, 0);
	if (parent->interest == ON_EVENT)
		end_turn(parent);
}

static void executed(struct task *task)
{
	pid_t former = (pid_t)message_of(task);
	struct task *caller = former == task->tid ? NULL : find_task(former);

	if (caller)
		remove_task(caller);
	drop_from_turn(task);
	drop_words(task->tgid);
	task->interest = IGNORED;
	task->in_call = true;
	if (!recording)
		say("start %d\n", task->tid);
	else
		say("exec %d %d\n", task->tid, former);
	recording = true;
	write_files(task->tid);
	resume(task, 0);
}

static bool is_last_thread(const struct task *task)
{
	for (const struct task *other = all; other; other = other->next)
		if (other != task && other->tgid == task->tgid)
			return false;
	return true;
}

/* What a process leaves is released by its last thread, alone. */
static void exiting(struct task *task)
{
	task->interest = ON_EVENT;
	if (recording && is_last_thread(task)) {
		say("exiting %d\n", task->tid);
		write_words(task, task->tid);
		if (!take_turn(task))
			return;
	}
	resume(task, 0);
}

static void ended(struct task *task, int status)
{
	if (task->tid == program)
		program_status = status;
	if (recording)
		say("end %d %d\n", task->tid, status);
	if (is_last_thread(task))
		drop_words(task->tgid);
	remove_task(task);
}

static void event_stop(struct task *task, int event, int signal)
{
	switch (event) {
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		forked(task);
		break;
	case PTRACE_EVENT_EXEC:
		executed(task);
		break;
	case PTRACE_EVENT_EXIT:
		exiting(task);
		break;
	case PTRACE_EVENT_STOP:
		if (signal == SIGTRAP)
			resume(task, 0);
		else
			ptrace(PTRACE_LISTEN, task->tid, NULL, NULL);
		break;
	default:
		resume(task, 0);
	}
}

static void stopped(pid_t tid, int status)
{
	struct task *task = find_task(tid);
	int signal = WSTOPSIG(status), event = status >> 16;

	if (!task)
		task = add_task(tid);
	task->stopped = true;
	if (!task->known)
		/* Until the event of its creator. */
		return;
	if (signal == SYSCALL_STOP)
		syscall_stop(task);
	else if (event)
		event_stop(task, event, signal);
	else
		resume(task, signal);
}

/* The creator of a task may have been killed before its event. */
static void adopt_strangers(void)
{
	for (struct task *task = all; task; task = task->next) {
		if (task->known)
			continue;
		task->known = true;
		say("stranger %d\n", task->tid);
		if (task->stopped)
			resume(task, 0);
	}
}

static void reported(pid_t tid, int status)
{
	if (WIFSTOPPED(status))
		stopped(tid, status);
	else if (find_task(tid))
		ended(find_task(tid), status);
}

static void block_child_signal(int how)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(how, &signals, NULL);
}

/* Until no task is left.  SIGCHLD is blocked: every stop sends one. */
static void follow(void)
{
	struct timespec patience = { PATIENCE, 0 };
	sigset_t signals;
	pid_t tid;
	int status;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	while ((tid = waitpid(-1, &status, __WALL | WNOHANG)) >= 0) {
		if (tid) {
			reported(tid, status);
		} else if (sigtimedwait(&signals, NULL, &patience) < 0 && errno == EAGAIN) {
			allow_overlap();
			adopt_strangers();
			flush_output();
		}
	}
}

static void start(char **words)
{
	struct task *task;
	int go[2];
	char byte;

	if (pipe(go))
		give_up("pipe");
	program = fork();
	if (program < 0)
		give_up("fork");
	if (!program) {
		int reason;

		block_child_signal(SIG_UNBLOCK);
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(125);
		close(go[0]);
		execvp(words[0], words);
		reason = errno;
		fprintf(stderr, "uevt: %s: %s\n", words[0], strerror(reason));
		_exit(reason == ENOENT ? 127 : 126);
	}
	task = add_task(program);
	task->known = true;
	if (ptrace(PTRACE_SEIZE, program, NULL, (void *)OPTIONS))
		give_up("ptrace");
	if (write(go[1], "", 1) != 1)
		give_up("pipe");
	close(go[0]);
	close(go[1]);
}

/* End with the status of the program: its exit code, or the signal that killed it. */
static int end_alike(void)
{
	struct rlimit none = { 0, 0 };

	if (WIFEXITED(program_status))
		return WEXITSTATUS(program_status);
	setrlimit(RLIMIT_CORE, &none);
	signal(WTERMSIG(program_status), SIG_DFL);
	raise(WTERMSIG(program_status));
	return 128 + WTERMSIG(program_status);
}

/* The terminal's signals are for the program. */
static void ignore_terminal(void)
{
	static const int signals[] = { SIGINT, SIGQUIT, SIGTSTP, SIGTTOU, SIGTTIN, SIGHUP };

	for (size_t at = 0; at < sizeof(signals) / sizeof(*signals); at++)
		signal(signals[at], SIG_IGN);
}

static enum listener listener_named(const char *name)
{
	if (!strcmp(name, "ftrace"))
		return LISTENER_FTRACE;
	return strcmp(name, "perf") ? LISTENER_NONE : LISTENER_PERF;
}

int main(int count, char **words)
{
	if (count < 5) {
		fprintf(stderr, "usage: recorder RECORDING LISTENER NAME_OFFSET PROGRAM [ARGUMENT ...]\n");
		return 125;
	}
	open_output(words[1]);
	listener = listener_named(words[2]);
	name_offset = (unsigned int)atoi(words[3]);
	begin_listening();
	block_child_signal(SIG_BLOCK);
	start(words + 4);
	ignore_terminal();
	follow();
	collect_records();
	say("done\n");
	flush_output();
	return end_alike();
}
