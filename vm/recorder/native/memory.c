// SPDX-License-Identifier: GPL-2.0
/* Memory of a stopped task, as the kernel would read it: up to the first byte that it cannot. */

#define _GNU_SOURCE
#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* For kernels without CONFIG_CROSS_MEMORY_ATTACH. */
static ssize_t read_through_proc(pid_t tid, uint64_t address, void *to, size_t length)
{
	char path[32];
	ssize_t count;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	count = pread(fd, to, length, (off_t)address);
	close(fd);
	return count;
}

static ssize_t read_part(pid_t tid, uint64_t address, void *to, size_t length)
{
	struct iovec local = { to, length };
	struct iovec remote = { (void *)address, length };
	ssize_t count = process_vm_readv(tid, &local, 1, &remote, 1, 0);

	if (count < 0 && errno == ENOSYS)
		return read_through_proc(tid, address, to, length);
	return count;
}

/* Read page by page: a fault in the middle of one iovec hides what could be read before it. */
size_t read_memory(pid_t tid, uint64_t address, void *to, size_t length)
{
	size_t done = 0;

	while (done < length) {
		size_t part = PAGE_SIZE - (address + done) % PAGE_SIZE;
		ssize_t count;

		if (part > length - done)
			part = length - done;
		count = read_part(tid, address + done, (char *)to + done, part);
		if (count <= 0)
			break;
		done += (size_t)count;
	}
	return done;
}

/* A number of at most eight bytes, 0 if it cannot be read. */
uint64_t load_number(pid_t tid, uint64_t address, size_t size)
{
	uint64_t value = 0;

	read_memory(tid, address, &value, size);
	return value;
}

static void write_line(uint64_t address, const void *bytes, size_t length, size_t wanted)
{
	say("memory %" PRIx64 " %zu ", address, wanted);
	say_bytes(bytes, length);
	say("\n");
}

void write_memory(pid_t tid, uint64_t address, size_t length)
{
	char *bytes = malloc(length + 1);

	if (!bytes)
		give_up("memory");
	write_line(address, bytes, read_memory(tid, address, bytes, length), length);
	free(bytes);
}

/* The string with its NUL, or its first `limit` bytes. */
void write_string(pid_t tid, uint64_t address, size_t limit)
{
	char *bytes = malloc(limit);
	size_t count, length;

	if (!bytes)
		give_up("memory");
	count = read_memory(tid, address, bytes, limit);
	length = strnlen(bytes, count);
	if (length < count)
		write_line(address, bytes, length + 1, length + 1);
	else
		write_line(address, bytes, count, limit);
	free(bytes);
}

/* The mapping of an address, if there is one. */
void write_rights(pid_t tid, uint64_t address)
{
	uint64_t start, end;
	char path[32], line[512], rights[8];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", tid);
	file = fopen(path, "re");
	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &start, &end, rights) != 3)
			continue;
		if (start <= address && address < end) {
			say("rights %" PRIx64 " %s\n", address, rights);
			break;
		}
	}
	fclose(file);
}
