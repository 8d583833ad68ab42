/* The decimal number that a file shows; -1 if there is none. */
static long number_in(const char *path)
{
	long got = cat(path);
	char *end;
	long number;

	if (got < 0)
		return -1;
	buffer[got] = 0;
	number = strtol(buffer, &end, 10);
	errno = EINVAL;
	return end == buffer ? -1 : number;
}
