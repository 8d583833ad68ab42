/* Replace the id of a `format` file. */
static long without_id(long got)
{
	char *line = buffer;

	if (got < 0)
		return got;
	buffer[state->length] = 0;
	while (strncmp(line, "ID: ", 4)) {
		line = strchr(line, '\n');
		if (!line++)
			return got;
	}
	memmove(line + 5, line + strcspn(line, "\n"), strlen(line + strcspn(line, "\n")) + 1);
	line[4] = 'N';
	state->length = (long)strlen(buffer);
	return got;
}
