#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

/* Whether user_events_status can be mapped, as before 6.4; the size may be another. */
static bool has_status_page(void)
{
	int file = open("/sys/kernel/tracing/user_events_status", O_RDONLY | O_CLOEXEC);
	void *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
	bool mapped = page != MAP_FAILED || errno != ENODEV;

	if (page != MAP_FAILED)
		munmap(page, 4096);
	close(file);
	return mapped;
}
