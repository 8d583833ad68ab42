#include <sys/mman.h>

/* read(2) through the 32-bit entry, into memory below 4 GiB. */
static long read32(int descriptor, size_t count)
{
	char *low = mmap(NULL, count, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long got = int80(3, (unsigned long)descriptor, (unsigned long)low, count, 0, 0, 0);

	if (got > 0)
		memcpy(buffer, low, (size_t)got);
	munmap(low, count);
	return got;
}
