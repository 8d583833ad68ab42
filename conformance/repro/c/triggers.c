/* Nothing, if there are no triggers: then the kernel lists the available ones. */
static long triggers(long got)
{
	if (got > 0 && !strncmp(buffer, "# Available triggers:\n#", 23) &&
	    memchr(buffer, '\n', (size_t)state->length - 1) == buffer + 21 &&
	    !memchr(buffer + 22, '\n', (size_t)state->length - 23))
		state->length = 0;
	return got;
}
