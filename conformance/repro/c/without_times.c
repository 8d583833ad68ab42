/* Remove the times in front of the lines of error_log. */
static long without_times(long got)
{
	char *line = buffer;

	if (got < 0)
		return got;
	buffer[state->length] = 0;
	while (*line) {
		size_t digits = strspn(line + 1, " 0123456789.");

		if (*line == '[' && digits && !strncmp(line + 1 + digits, "] ", 2))
			memmove(line, line + digits + 3, strlen(line + digits + 3) + 1);
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	state->length = (long)strlen(buffer);
	return got;
}
