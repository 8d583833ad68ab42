// SPDX-License-Identifier: GPL-2.0
/* One perf event per user event and CPU; those of a CPU share a ring. */

#define _GNU_SOURCE
#include "recorder.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RING_PAGES 32
#define RING_SIZE (RING_PAGES * PAGE_SIZE)

/* The perf event that owns the ring, and the ring. */
static struct ring {
	int fd;
	struct perf_event_mmap_page *page;
} *rings;
static int cpus;

/* Events that are listened to: a program may register one twice. */
static struct listened {
	struct listened *next;
	int id, cpu;
} *known;

static void allocate_rings(void)
{
	if (rings)
		return;
	cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
	rings = calloc((size_t)cpus, sizeof(*rings));
	if (!rings)
		give_up("memory");
}

static bool map_ring(int fd, int cpu)
{
	void *page = mmap(NULL, PAGE_SIZE + RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		return false;
	rings[cpu].fd = fd;
	rings[cpu].page = page;
	return true;
}

/* 0 or an errno; EEXIST if the event is listened to already. */
int perf_listen(int id, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = (uint64_t)id,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_RAW,
	};
	struct listened *event = known;
	int fd, error;
	bool shared;

	while (event && (event->id != id || event->cpu != cpu))
		event = event->next;
	if (event)
		return EEXIST;
	allocate_rings();
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return errno;
	shared = rings[cpu].page;
	if (shared ? ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, rings[cpu].fd) : !map_ring(fd, cpu)) {
		error = errno;
		close(fd);
		return error;
	}
	event = malloc(sizeof(*event));
	if (!event)
		give_up("memory");
	*event = (struct listened){ known, id, cpu };
	known = event;
	return 0;
}

static void copy_from(const uint8_t *ring, uint64_t position, void *to, size_t length)
{
	for (size_t at = 0; at < length; at++)
		((uint8_t *)to)[at] = ring[(position + at) % RING_SIZE];
}

static void collect_ring(int cpu)
{
	struct perf_event_mmap_page *page = rings[cpu].page;
	const uint8_t *ring = (const uint8_t *)page + PAGE_SIZE;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = page->data_tail;
	static uint8_t body[1 << 16];

	while (tail < head) {
		struct perf_event_header header;

		copy_from(ring, tail, &header, sizeof(header));
		if (header.size < sizeof(header))
			break;
		copy_from(ring, tail + sizeof(header), body, header.size - sizeof(header));
		say("sample %d %u ", cpu, header.type);
		say_bytes(body, header.size - sizeof(header));
		say("\n");
		tail += header.size;
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}

void perf_collect(void)
{
	for (int cpu = 0; cpu < cpus; cpu++)
		if (rings[cpu].page)
			collect_ring(cpu);
}
