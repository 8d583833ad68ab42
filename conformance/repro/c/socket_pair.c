#include <sys/socket.h>

static long socket_pair(int *one, int *other)
{
	int pair[2], value;

	value = socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair);
	if (!value) {
		*one = pair[0];
		*other = pair[1];
	}
	return value;
}
