// SPDX-License-Identifier: GPL-2.0
/* The supervisor: start, kill and reap actors, and report their exits to the host. */

#define _GNU_SOURCE
#include "native.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Limit for a process to exit after a signal, milliseconds. */
#define EXIT_MS 5000
#define PORTS 64
#define NAME_SIZE 64

/* Devices of the ports by port name. */
static struct {
	char name[NAME_SIZE], device[NAME_SIZE];
} known[PORTS];
static size_t known_count;
/* The pipe that SIGCHLD writes to; -1 in an actor. */
static int sigchld_read = -1, sigchld_write = -1;

EXPORTED bool engine_supervises(void)
{
	return sigchld_read >= 0;
}

/* Register the device of a port for spawn().  False if the table is full. */
EXPORTED bool engine_register_port(const char *name, const char *device)
{
	if (known_count == PORTS || strlen(name) >= NAME_SIZE || strlen(device) >= NAME_SIZE)
		return false;
	strcpy(known[known_count].name, name);
	strcpy(known[known_count].device, device);
	known_count++;
	return true;
}

/* Reap every child that has exited and report it to the host.  False when the host is gone. */
static bool report_exits(void)
{
	char text[96];
	int status;
	pid_t pid;

	while (read(sigchld_read, text, sizeof(text)) > 0)
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		snprintf(text, sizeof(text), "{\"id\":0,\"ended\":%d,\"status\":%d}", pid, status);
		if (!send_text(text))
			return false;
	}
	return true;
}

/* Wait for input on the port and report exits meanwhile.  False when the host is gone. */
static bool wait_for_port(void)
{
	struct pollfd wanted[] = {
		{ .fd = engine_port(), .events = POLLIN },
		{ .fd = sigchld_read, .events = POLLIN },
	};

	for (;;) {
		if (poll(wanted, 2, -1) < 0 && errno != EINTR)
			return false;
		if (wanted[1].revents && !report_exits())
			return false;
		/* POLLHUP too: the following read() finds the end. */
		if (wanted[0].revents)
			return true;
	}
}

/* Become the supervisor; the arguments are the two ends of the SIGCHLD pipe. */
EXPORTED void engine_supervise(int read_end, int write_end)
{
	sigchld_read = read_end;
	sigchld_write = write_end;
	set_before_read(wait_for_port);
}

/* Signal a process and reap it.  The value is its wait status; ETIMEDOUT if it does not exit. */
struct result end_process(pid_t pid, int signal)
{
	struct pollfd process = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	struct result result;
	int status = 0, ready;

	if (process.fd < 0)
		return refused(errno);
	result = answered(kill(pid, signal));
	if (!result.error) {
		do {
			ready = poll(&process, 1, EXIT_MS);
		} while (ready < 0 && errno == EINTR);
		if (ready <= 0)
			result = refused(ETIMEDOUT);
		else if (waitpid(pid, &status, 0) < 0)
			result = refused(errno);
		else
			result.value = status;
	}
	close(process.fd);
	return result;
}

/* In a forked child: drop the supervisor's descriptors and serve the actor's own port. */
static void become_actor(const char *device)
{
	char hello[64];
	int descriptor;

	signal(SIGCHLD, SIG_DFL);
	close(sigchld_read);
	close(sigchld_write);
	sigchld_read = sigchld_write = -1;
	set_before_read(NULL);
	close(engine_port());
	descriptor = open_device(device);
	if (descriptor < 0)
		_exit(1);
	open_port(descriptor);
	snprintf(hello, sizeof(hello), "{\"id\":0,\"hello\":%d}", getpid());
	if (!send_text(hello))
		_exit(0);
}

/* Fork an actor for a port; the value is its pid, or ENODEV if the port is not registered. */
enum progress spawn(const char *name, struct result *result)
{
	for (size_t i = 0; i < known_count; i++) {
		if (strcmp(known[i].name, name))
			continue;
		engine_drain_device(known[i].device);
		*result = answered(fork());
		if (result->value)
			return DONE;
		become_actor(known[i].device);
		return BORN;
	}
	*result = refused(ENODEV);
	return DONE;
}
