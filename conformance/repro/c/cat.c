#include <fcntl.h>
#include <unistd.h>

/* Read a file to its end into the buffer. */
static long cat(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	long used = 0, got, error;

	if (file < 0)
		return -1;
	while ((got = read(file, buffer + used, used < 4096 ? 4096 : 65536)) > 0)
		used += got;
	error = errno;
	close(file);
	errno = (int)error;
	state->length = used;
	return got < 0 ? -1 : used;
}
