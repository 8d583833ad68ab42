static long made(long pid)
{
	return pid < 0 ? -errno : 0;
}
