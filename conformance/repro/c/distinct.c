static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The records without their tasks, sorted and each once. */
static long distinct(long got)
{
	static char *lines[1 << 16];
	size_t count = 0, used = 0;
	char *line = buffer;

	if (got < 0)
		return got;
	buffer[state->length] = 0;
	while (*line) {
		char *end = strchr(line, '\n');

		*end = 0;
		if (strncmp(line, "entries: ", 9))
			lines[count++] = strncmp(line, "task ", 5) ? line : strstr(line, ": ") + 2;
		line = end + 1;
	}
	qsort(lines, count, sizeof(*lines), compare_lines);
	for (size_t i = 0; i < count; i++)
		if (!i || strcmp(lines[i], lines[i - 1]))
			used += (size_t)sprintf(described + used, "%s\n", lines[i]);
	memcpy(buffer, described, used);
	state->length = (long)used;
	return got;
}
