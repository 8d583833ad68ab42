/* Remove the lines that begin with one of these words. */
static long without_lines(long got, size_t count, const char *const *words)
{
	char *line = buffer;

	if (got < 0)
		return got;
	buffer[state->length] = 0;
	while (*line) {
		char *next = strchr(line, '\n');
		size_t i = 0;

		next = next ? next + 1 : line + strlen(line);
		while (i < count && strncmp(line, words[i], strlen(words[i])))
			i++;
		if (i < count)
			memmove(line, next, strlen(next) + 1);
		else
			line = next;
	}
	state->length = (long)strlen(buffer);
	return got;
}
