// SPDX-License-Identifier: GPL-2.0
/*
 * The listener that enables events: an instance of tracefs, so that the program has the top one for
 * itself, or perf.  A registered event is enabled before the program goes on, and the records of a
 * write are read before the next call.
 */

#define _GNU_SOURCE
#include "recorder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define INSTANCE TRACEFS "/instances/uevt"
/* struct buffer_data_page: time stamp, then the length of the data with two flags. */
#define PAGE_HEADER 16
#define COMMIT_MASK ((1u << 30) - 1)
#define LONGEST_NAME 512

enum listener listener;
static const char *const systems[] = { "user_events", "user_events_multi" };
static int *pipes;
static int cpus;

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), error = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) < 0)
		error = errno;
	close(fd);
	return error;
}

/*
 * The listener needs a descriptor of each CPU, and with perf one of each event and CPU.  Returns
 * the former limit, which the program inherits.
 */
static rlim_t limit_descriptors(rlim_t most)
{
	struct rlimit limit;
	rlim_t former;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		give_up("getrlimit");
	former = limit.rlim_cur;
	limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	return former;
}

static int open_pipes(void)
{
	int configured = cpus;
	char path[128];

	pipes = calloc((size_t)configured, sizeof(*pipes));
	if (!pipes)
		give_up("memory");
	for (cpus = 0; cpus < configured; cpus++) {
		snprintf(path, sizeof(path), INSTANCE "/per_cpu/cpu%d/trace_pipe_raw", cpus);
		pipes[cpus] = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (pipes[cpus] < 0)
			return cpus && errno == ENOENT ? 0 : errno;
	}
	return 0;
}

void begin_listening(void)
{
	rlim_t former = limit_descriptors(RLIM_INFINITY);
	int error = 0;

	cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
	if (listener == LISTENER_FTRACE) {
		error = mkdir(INSTANCE, 0700) ? errno : 0;
		say("listening ftrace %d\n", error);
		if (!error)
			error = open_pipes();
	} else if (listener == LISTENER_PERF) {
		say("listening perf 0\n");
	}
	limit_descriptors(former);
	if (error) {
		fprintf(stderr, "uevt: recorder: no listener: %s\n", strerror(error));
		listener = LISTENER_NONE;
	}
	flush_output();
}

/* The file `id` of an event, 0 if there is none. */
static int id_of(const char *system, const char *name)
{
	char path[1024], text[16] = "";
	int fd;

	snprintf(path, sizeof(path), TRACEFS "/events/%s/%s/id", system, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	return atoi(text);
}

static void found(const char *system, const char *name)
{
	int id = id_of(system, name);

	if (!id)
		return;
	say("event %s %d ", system, id);
	say_bytes(name, strlen(name));
	say("\n");
	for (int cpu = 0; listener == LISTENER_PERF && cpu < cpus; cpu++)
		say("perf %d %d %d\n", id, cpu, perf_listen(id, cpu));
}

/* The formats of a multi-format name are events NAME.0, NAME.1 and so on. */
static void find_formats(const char *system, const char *name)
{
	size_t length = strlen(name);
	struct dirent *entry;
	char path[128];
	DIR *directory;

	snprintf(path, sizeof(path), TRACEFS "/events/%s", system);
	directory = opendir(path);
	if (!directory)
		return;
	while ((entry = readdir(directory)))
		if (!strncmp(entry->d_name, name, length) && entry->d_name[length] == '.')
			found(system, entry->d_name);
	closedir(directory);
}

static void enable(const char *system)
{
	char path[128];
	int error;

	snprintf(path, sizeof(path), INSTANCE "/events/%s/enable", system);
	error = write_text(path, "1");
	/* There is no directory as long as there is no event. */
	if (error != ENOENT)
		say("enable %s %d\n", system, error);
}

/* Enable the event whose registration string is at `address`. */
void listen_to(struct task *task, uint64_t address)
{
	char name[LONGEST_NAME + 1];
	size_t count = read_memory(task->tid, address, name, LONGEST_NAME);

	if (listener == LISTENER_NONE)
		return;
	limit_descriptors(RLIM_INFINITY);
	name[count] = '\0';
	name[strcspn(name, " :")] = '\0';
	for (size_t at = 0; listener == LISTENER_FTRACE && at < 2; at++)
		enable(systems[at]);
	found(systems[0], name);
	find_formats(systems[1], name);
}

static void collect_pages(int cpu)
{
	uint8_t page[PAGE_SIZE];
	uint64_t commit;

	while (read(pipes[cpu], page, sizeof(page)) == sizeof(page)) {
		memcpy(&commit, page + sizeof(uint64_t), sizeof(commit));
		commit &= COMMIT_MASK;
		say("page %d ", cpu);
		say_bytes(page, commit < PAGE_SIZE - PAGE_HEADER ? PAGE_HEADER + commit : PAGE_SIZE);
		say("\n");
	}
}

void collect_records(void)
{
	for (int cpu = 0; listener == LISTENER_FTRACE && cpu < cpus; cpu++)
		collect_pages(cpu);
	if (listener == LISTENER_PERF)
		perf_collect();
}
