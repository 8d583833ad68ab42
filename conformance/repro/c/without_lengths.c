/* Remove the lengths of arrays from a `format` file. */
static long without_lengths(long got)
{
	char *line = buffer;

	if (got < 0)
		return got;
	buffer[state->length] = 0;
	while ((line = strstr(line, "\tfield:"))) {
		char *end = strstr(line, ";\toffset:"), *open;

		line += strlen("\tfield:");
		if (!end || !strncmp(line, "__data_loc", 10) || end[-1] != ']')
			continue;
		open = end;
		while (open > line && *open != '[')
			open--;
		memmove(open + 1, end - 1, strlen(end - 1) + 1);
	}
	state->length = (long)strlen(buffer);
	return got;
}
