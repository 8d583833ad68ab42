/* Remove " (Used by ...)" from the ends of the lines. */
static long without_users(long got)
{
	char *found = buffer;

	if (got < 0)
		return got;
	buffer[state->length] = 0;
	while ((found = strstr(found, " (Used by"))) {
		char *end = found + strcspn(found, "\n");

		if (end[-1] == ')')
			memmove(found, end, strlen(end) + 1);
		else
			found = end;
	}
	state->length = (long)strlen(buffer);
	return got;
}
