#include <fcntl.h>
#include <unistd.h>

/* Give data to one write(2) of a file. */
static long echo(const char *path, int flags, const void *data, size_t length)
{
	int file = open(path, flags | O_CLOEXEC, 0644), error;
	long written;

	if (file < 0)
		return -1;
	written = write(file, data, length);
	error = errno;
	close(file);
	errno = error;
	return written;
}
