#include <sys/stat.h>

/* stat(2): the permissions of a path. */
static long mode_of(const char *path)
{
	struct stat found;

	return stat(path, &found) ? -1 : (long)(found.st_mode & 07777);
}
