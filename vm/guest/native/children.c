// SPDX-License-Identifier: GPL-2.0
/* What the supervisor does: it starts, ends and reaps actors, and tells their ends. */

#define _GNU_SOURCE
#include "native.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long a process may take to be gone after its signal, milliseconds. */
#define DYING_MS 5000
#define PORTS 64
#define NAME_SIZE 64

/* The devices of ports, by their names. */
static struct {
	char name[NAME_SIZE], device[NAME_SIZE];
} known[PORTS];
static size_t known_count;
/* Both ends of the pipe that SIGCHLD is written to; an actor has none. */
static int woken = -1, waker = -1;

EXPORTED bool engine_supervises(void)
{
	return woken >= 0;
}

/* The port that is served: a process that was born has another one than it knew. */
EXPORTED int engine_port(void)
{
	return port_descriptor();
}

/* Remember the device of a port: spawn() needs it.  Whether there was room. */
EXPORTED bool engine_know(const char *name, const char *device)
{
	if (known_count == PORTS || strlen(name) >= NAME_SIZE || strlen(device) >= NAME_SIZE)
		return false;
	strcpy(known[known_count].name, name);
	strcpy(known[known_count].device, device);
	known_count++;
	return true;
}

/* Be the supervisor from now on. */
EXPORTED void engine_supervise(int reading, int writing)
{
	woken = reading;
	waker = writing;
}

/* Tell the host of every child that has ended; whether the host is there. */
static bool tell_ends(void)
{
	char text[96];
	int status;
	pid_t pid;

	/* What is in the pipe says no more than that it was written to. */
	while (read(woken, text, sizeof(text)) > 0)
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		snprintf(text, sizeof(text), "{\"id\":0,\"ended\":%d,\"status\":%d}", pid, status);
		if (!send_text(text))
			return false;
	}
	return true;
}

/* Wait until there is something to read from the port; whether the host is there. */
bool wait_for_port(void)
{
	struct pollfd wanted[] = {
		{ .fd = port_descriptor(), .events = POLLIN },
		{ .fd = woken, .events = POLLIN },
	};

	for (;;) {
		if (poll(wanted, 2, -1) < 0 && errno != EINTR)
			return false;
		if (wanted[1].revents && !tell_ends())
			return false;
		/* A host that has hung up is found where it is read from. */
		if (wanted[0].revents)
			return true;
	}
}

/* The value is the wait status; ETIMEDOUT when the signal did not end the process. */
struct result end_process(pid_t pid, int signal)
{
	struct pollfd going = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	struct result result;
	int status = 0, ready;

	if (going.fd < 0)
		return refused(errno);
	result = answered(kill(pid, signal));
	if (!result.error) {
		do {
			ready = poll(&going, 1, DYING_MS);
		} while (ready < 0 && errno == EINTR);
		if (ready <= 0)
			result = refused(ETIMEDOUT);
		else if (waitpid(pid, &status, 0) < 0)
			result = refused(errno);
		else
			result.value = status;
	}
	close(going.fd);
	return result;
}

/* In a child of the supervisor's: hold nothing of its own, and serve another port. */
EXPORTED void engine_be_born(const char *device)
{
	char hello[64];
	int descriptor;

	signal(SIGCHLD, SIG_DFL);
	close(woken);
	close(waker);
	woken = waker = -1;
	close(port_descriptor());
	descriptor = open(device, O_RDWR | O_CLOEXEC);
	if (descriptor < 0)
		_exit(1);
	open_port(descriptor);
	snprintf(hello, sizeof(hello), "{\"id\":0,\"hello\":%d}", getpid());
	if (!send_text(hello))
		_exit(0);
}

/* Start an actor that serves a port; the value is its process id.  LEFT where nobody knows it. */
enum progress spawn(const char *name, struct result *result)
{
	for (size_t i = 0; i < known_count; i++) {
		if (strcmp(known[i].name, name))
			continue;
		*result = answered(fork());
		if (result->value)
			return DONE;
		engine_be_born(known[i].device);
		return BORN;
	}
	return LEFT;
}
