#include <sys/socket.h>

/* One byte, with room for one descriptor. */
struct message {
	struct msghdr header;
	struct iovec iovec;
	char byte;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
};

static struct message *message(void)
{
	static struct message one;
	struct cmsghdr *control;

	one.iovec = (struct iovec){ &one.byte, 1 };
	one.header = (struct msghdr){
		.msg_iov = &one.iovec, .msg_iovlen = 1,
		.msg_control = one.control, .msg_controllen = sizeof(one.control),
	};
	control = CMSG_FIRSTHDR(&one.header);
	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SCM_RIGHTS;
	control->cmsg_len = CMSG_LEN(sizeof(int));
	return &one;
}
