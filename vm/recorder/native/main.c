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
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* sys/ptrace.h and linux/ptrace.h exclude each other. */
long ptrace(int request, ...);

#define OPTIONS                                                                                  \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | \
	 PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL)
#define SYSCALL_STOP (SIGTRAP | 0x80)
/* Milliseconds after which a task whose creator's event is missing is followed without it. */
#define PATIENCE 1000
/* Seconds to sleep while no task stops. */
#define IDLE 1

static pid_t program;
static int program_status;
static bool recording;

/* A task that was killed meanwhile is reported again: it may be in its last stop already. */
void resume(struct task *task, int signal)
{
	siginfo_t about;

	if (!task->exiting && !ptrace(PTRACE_GETSIGINFO, task->tid, NULL, &about) &&
	    about.si_code == (SIGTRAP | PTRACE_EVENT_EXIT << 8))
		return;
	ptrace(PTRACE_SYSCALL, task->tid, NULL, (void *)(long)signal);
}

/* The system call of a stopped task; false if it was killed and has left this stop. */
static bool read_call(const struct task *task, struct ptrace_syscall_info *info)
{
	long size = ptrace(PTRACE_GET_SYSCALL_INFO, task->tid, (void *)sizeof(*info), info);

	return size > 0 && info->op != PTRACE_SYSCALL_INFO_NONE;
}

/* The message of an event; false if the task was killed and has left this stop. */
static bool read_message(const struct task *task, int event, pid_t *message)
{
	unsigned long number;
	siginfo_t about;

	if (ptrace(PTRACE_GETEVENTMSG, task->tid, NULL, &number) ||
	    ptrace(PTRACE_GETSIGINFO, task->tid, NULL, &about))
		return false;
	*message = (pid_t)number;
	return about.si_code == (SIGTRAP | event << 8);
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

	if (!read_call(task, &info))
		return;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
		enter_call(task, &info);
	else
		leave_call(task, info.op == PTRACE_SYSCALL_INFO_EXIT ? info.exit.rval : 0);
}

static void forked(struct task *parent, int event)
{
	uint64_t flags = clone_flags(parent);
	struct task *child;
	pid_t tid;

	if (!read_message(parent, event, &tid))
		return;
	child = find_task(tid);
	if (!child)
		child = add_task(tid);
	child->known = true;
	child->tgid = flags & CLONE_THREAD ? parent->tgid : tid;
	if (recording) {
		say("fork %d %d %d %" PRIx64 "\n", parent->tid, tid, child->tgid, flags);
		if (!(flags & CLONE_VM)) {
			inherit_words(parent->tgid, tid);
			write_words(child);
		}
	}
	resume(parent, 0);
	if (parent->interest == ON_EVENT)
		end_turn(parent);
}

/* The other threads have ended; the caller has got the number of the first one. */
static void executed(struct task *task)
{
	struct task *other;
	pid_t former;

	if (!read_message(task, PTRACE_EVENT_EXEC, &former))
		former = task->tid;
	task->exiting = false;
	while ((other = other_thread(task, true)) || (other = other_thread(task, false))) {
		pass_turn(other, task);
		remove_task(other);
	}
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
	drop_from_turn(task);
}

static void write_exiting(struct task *task)
{
	say("exiting %d\n", task->tid);
	write_words(task);
}

/* A task that was killed in a call has its result in a register, or -ENOSYS if it made none. */
static void write_last_call(struct task *task)
{
	long result;

	if (task->waiting || !task->in_call || task->interest != ON_ENTRY)
		return;
	errno = 0;
	result = ptrace(PTRACE_PEEKUSR, task->tid, (void *)offsetof(struct user, regs.rax), NULL);
	if (errno || result == -ENOSYS)
		return;
	write_exit(task, result);
	task->in_call = false;
}

/* What a process leaves is released by its last thread, alone. */
static void exiting(struct task *task)
{
	if (recording)
		write_last_call(task);
	task->exiting = true;
	task->waiting = false;
	task->interest = ON_EVENT;
	if (recording && !other_thread(task, false)) {
		if (!take_turn(task))
			return;
		write_exiting(task);
	}
	resume(task, 0);
}

/* The turn of a task that was waiting for it; false if it was killed meanwhile. */
bool begin_turn(struct task *task)
{
	struct ptrace_syscall_info info;

	if (task->exiting)
		write_exiting(task);
	else if (!read_call(task, &info))
		return false;
	else if (task->interest == ON_ENTRY)
		/* Its memory may have changed while it was waiting. */
		write_entry(task);
	resume(task, 0);
	return true;
}

static void ended(struct task *task, int status)
{
	struct task *other = other_thread(task, true);

	if (task->tid == program)
		program_status = status;
	if (recording)
		say("end %d %d\n", task->tid, status);
	/* Of a call whose end was not seen: they are of no other call. */
	if (recording && task->in_call && task->interest == ON_ENTRY)
		collect_records();
	if (other)
		pass_turn(task, other);
	else if (!other_thread(task, false))
		drop_words(task->tgid);
	remove_task(task);
}

static void event_stop(struct task *task, int event, int signal)
{
	switch (event) {
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		forked(task, event);
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

static void stopped(struct task *task, int status)
{
	int signal = WSTOPSIG(status), event = status >> 16;

	if (signal == SYSCALL_STOP)
		syscall_stop(task);
	else if (event)
		event_stop(task, event, signal);
	else
		resume(task, signal);
}

/* Whether a process has a task that is not about to end. */
static bool goes_on(pid_t tgid)
{
	const struct task *task = tasks();

	while (task && (task->tgid != tgid || !task->known || task->exiting))
		task = task->next;
	return task;
}

/* Whether the creator of a stopped task cannot report it any more. */
static bool is_orphan(struct task *task)
{
	pid_t parent = read_process(task);

	/* With CLONE_PARENT the creator is another one. */
	return WIFSTOPPED(task->status) && parent != getpid() &&
	       !goes_on(task->tgid == task->tid ? parent : task->tgid);
}

/* The creator of a task may have been killed before its event.  Returns whether there is one. */
static bool adopt_strangers(void)
{
	bool found = false;

	for (struct task *task = tasks(); task; task = task->next) {
		if (task->known ||
		    (milliseconds() - task->since < PATIENCE && !is_orphan(task)))
			continue;
		task->known = found = true;
		say("stranger %d\n", task->tid);
	}
	return found;
}

/*
 * Collect the stops and ends of all tasks before one of them is resumed: waitpid() reports the
 * newest task first, and a busy one would hide the others.  Returns whether there are tasks left.
 */
static bool collect_reports(void)
{
	struct task *task;
	pid_t tid;
	int status;

	while ((tid = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
		task = find_task(tid);
		if (!task)
			task = add_task(tid);
		/* A task that was killed has left its former stop. */
		task->status = status;
		task->reported = true;
	}
	return !tid;
}

/* A new task stays stopped until the event of its creator. */
static struct task *next_reported(void)
{
	struct task *task = tasks();

	while (task && !(task->known && task->reported))
		task = task->next;
	return task;
}

static void handle_reports(void)
{
	struct task *task;

	do {
		while ((task = next_reported())) {
			task->reported = false;
			if (WIFSTOPPED(task->status))
				stopped(task, task->status);
			else
				ended(task, task->status);
		}
	} while (adopt_strangers());
}

static sigset_t child_signal(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	return signals;
}

/* Until no task is left.  SIGCHLD is blocked: every stop sends one. */
static void follow(void)
{
	const struct timespec idle = { IDLE, 0 };
	const sigset_t signals = child_signal();

	while (collect_reports()) {
		handle_reports();
		allow_overlap();
		flush_now_and_then();
		sigtimedwait(&signals, NULL, &idle);
	}
	handle_reports();
}

static void start(char **words)
{
	const sigset_t signals = child_signal();
	struct task *task;
	int go[2];
	char byte;

	sigprocmask(SIG_BLOCK, &signals, NULL);
	if (pipe(go))
		give_up("pipe");
	program = fork();
	if (program < 0)
		give_up("fork");
	if (!program) {
		int reason;

		sigprocmask(SIG_UNBLOCK, &signals, NULL);
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

/* The terminal's signals are for the program, and SIGCHLD is for the recorder. */
static void choose_signals(void)
{
	static const int signals[] = { SIGINT, SIGQUIT, SIGTSTP, SIGTTOU, SIGTTIN, SIGHUP };

	for (size_t at = 0; at < sizeof(signals) / sizeof(*signals); at++)
		signal(signals[at], SIG_IGN);
	/* A task that stops signals no tracer that ignores it. */
	signal(SIGCHLD, SIG_DFL);
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
	start(words + 4);
	choose_signals();
	follow();
	collect_records();
	say("done\n");
	flush_output();
	return end_alike();
}
