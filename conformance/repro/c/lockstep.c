#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_ACTORS 16
#define SHARED_FD 900
#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/*
 * All processes run program() in lock step.  The process of a step performs its call, the others
 * wait; MAIN compares the answer and begins the next step.
 */
static struct shared {
	int turn;		/* the step whose call may be performed */
	int posted;		/* it was performed so often */
	int wanted;		/* it shall be performed so often */
	int step;
	char text[512];
	long value, length;
	int error;
	int leaving;		/* the process ends */
	int from[MOST_ACTORS];	/* the first step of a process */
	int pid[MOST_ACTORS];
	int descriptors[64];
	int gate, finished;	/* of a race */
	struct { long count, value; } tally[8][64][5];
	char content[2 << 20];
} *state;
static char *buffer;

static void program(int me, int from);

/* A system call that leaves errno alone: threads made with clone(2) share it. */
static long raw(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long value;

	__asm__ volatile("syscall"
			 : "=a"(value)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return value;
}

static int load(int *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void set(int *word, int value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
	raw(SYS_futex, (long)word, FUTEX_WAKE, INT_MAX, 0, 0, 0);
}

static void wait_while(int *word, int value)
{
	while (load(word) == value)
		raw(SYS_futex, (long)word, FUTEX_WAIT, value, 0, 0, 0);
}

static void wait_until(int *word, int least)
{
	int value;

	while (value = load(word), value < least)
		wait_while(word, value);
}

/* Wait for a step; whether this process performs it. */
static bool begin(int me, int from, int number, int actor, const char *text)
{
	if (number < from)
		return false;
	if (me == MAIN) {
		state->step = number;
		snprintf(state->text, sizeof(state->text), "%s", text);
		state->leaving = 0;
		set(&state->wanted, 0);
		set(&state->posted, 0);
		set(&state->turn, number);
		set(&state->wanted, 1);
	}
	if (me != actor)
		return false;
	wait_until(&state->turn, number);
	state->length = -1;
	errno = 0;
	return true;
}

static void answer(int me, int actor, int number, long value)
{
	/* A forked child, or a parent that was suspended by its child. */
	if (me != actor || load(&state->turn) != number)
		return;
	state->value = value;
	state->error = value == -1 ? errno : 0;
	if (state->length < 0)
		state->length = value;
	set(&state->posted, state->posted + 1);
}

static bool running(int actor)
{
	char path[64], text[512];
	const char *end;
	FILE *file;
	size_t got;

	snprintf(path, sizeof(path), "/proc/%d/stat", state->pid[actor]);
	file = fopen(path, "r");
	if (!file)
		return false;
	got = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[got] = 0;
	end = strrchr(text, ')');
	return end && end[2] != 'Z' && end[2] != 'X';
}

/* Wait for the end of a process or thread; process 1 of a PID namespace waits for the others. */
static void wait_for_end(int actor)
{
	bool alive;

	do {
		alive = running(actor);
		while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
			;
		usleep(500);
	} while (alive);
}

static void finish(int status)
{
	for (int actor = 1; actor < MOST_ACTORS; actor++)
		if (state->pid[actor] > 0)
			kill(state->pid[actor], SIGKILL);
	while (waitpid(-1, NULL, __WALL) > 0)
		;
	exit(status);
}

#ifdef MEMORY
/* Read memory of a process, honouring its protection. */
static bool read_memory(int actor, uintptr_t address, char *to, size_t length)
{
	struct iovec local = { to, length }, remote = { (void *)address, length };

	if (actor == MAIN)
		return copy(to, (const void *)address, length);
	return process_vm_readv(state->pid[actor], &local, 1, &remote, 1, 0) == (ssize_t)length;
}

#endif
static void map_shared(void)
{
	state = mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
	if (state == MAP_FAILED)
		exit(4);
	buffer = state->content;
}
