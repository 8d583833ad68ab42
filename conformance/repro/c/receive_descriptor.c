/* 0, and the descriptor that was received. */
static long receive_descriptor(int socket, int *descriptor)
{
	struct message *received = message();
	struct cmsghdr *control;

	if (recvmsg(socket, &received->header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) < 0)
		return -1;
	control = CMSG_FIRSTHDR(&received->header);
	if (!control || control->cmsg_type != SCM_RIGHTS)
		return -2;
	memcpy(descriptor, CMSG_DATA(control), sizeof(*descriptor));
	return 0;
}
