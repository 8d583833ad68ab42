static long send_descriptor(int socket, int descriptor)
{
	struct message *sent = message();

	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&sent->header)), &descriptor, sizeof(descriptor));
	return sendmsg(socket, &sent->header, 0);
}
