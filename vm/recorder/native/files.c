// SPDX-License-Identifier: GPL-2.0
/* Descriptors and credentials of a task. */

#define _GNU_SOURCE
#include "recorder.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

bool is_tracefs(pid_t tid, int fd)
{
	struct statfs about;
	char path[48];

	if (fd < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", tid, fd);
	return !statfs(path, &about) && about.f_type == TRACEFS_MAGIC;
}

void write_file(pid_t tid, int fd)
{
	char path[48], target[PATH_MAX];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", tid, fd);
	length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return;
	say("file %d ", fd);
	say_bytes(target, (size_t)length);
	say("\n");
}

/* All descriptors of tracefs files. */
void write_files(pid_t tid)
{
	char path[32];
	struct dirent *entry;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%d/fd", tid);
	directory = opendir(path);
	if (!directory)
		return;
	while ((entry = readdir(directory))) {
		int fd = isdigit(entry->d_name[0]) ? atoi(entry->d_name) : -1;

		if (is_tracefs(tid, fd))
			write_file(tid, fd);
	}
	closedir(directory);
}

/* Set the process of a task; returns the parent of the process, 0 if the task has ended. */
pid_t read_process(struct task *task)
{
	char path[32], line[128];
	pid_t parent = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", task->tid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		sscanf(line, "Tgid: %d", &task->tgid);
		sscanf(line, "PPid: %d", &parent);
	}
	fclose(file);
	return parent;
}

static ssize_t user_namespace(const char *task, char *name, size_t size)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%s/ns/user", task);
	return readlink(path, name, size);
}

/* Whether the capabilities of a task count in another user namespace. */
static bool in_other_namespace(pid_t tid)
{
	char task[16], own[64], other[64];
	ssize_t length = user_namespace("self", own, sizeof(own));

	snprintf(task, sizeof(task), "%d", tid);
	return user_namespace(task, other, sizeof(other)) != length ||
	       (length > 0 && memcmp(own, other, (size_t)length));
}

void write_credentials(pid_t tid)
{
	unsigned int uid = 0, gid = 0;
	unsigned long long effective = 0;
	char path[32], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	file = fopen(path, "re");
	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		/* The last number is that of the file system. */
		sscanf(line, "Uid: %*u %*u %*u %u", &uid);
		sscanf(line, "Gid: %*u %*u %*u %u", &gid);
		sscanf(line, "CapEff: %llx", &effective);
	}
	fclose(file);
	say("credentials %u %u %llx %d\n", uid, gid, effective, in_other_namespace(tid));
}
