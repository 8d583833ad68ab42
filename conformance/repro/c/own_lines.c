#include <ctype.h>

static const char *skip_word(const char *text, char end)
{
	const char *rest = text;

	while (isalnum((unsigned char)*rest) || *rest == '_')
		rest++;
	return rest > text && *rest == end ? rest + 1 : text;
}

/* Whether a line names an event of another program: those of this one begin with the prefix. */
static bool of_others(const char *line, const char *prefix)
{
	const char *name = skip_word(skip_word(line, ':'), '/'), *digits = name + 1;

	if (*name != 't')
		return false;
	while (isdigit((unsigned char)*digits))
		digits++;
	return digits > name + 1 && *digits == '_' && strncmp(name, prefix, strlen(prefix));
}

static bool is_total(const char *line)
{
	return !*line || !strncmp(line, "Active: ", 8) || !strncmp(line, "Busy: ", 6) ||
	       !strncmp(line, "Max: ", 5);
}

/* Keep the lines about events of this program: not the totals, nor the events of others. */
static long own_lines(long got, const char *prefix)
{
	char *line = buffer, *to = buffer;

	if (got < 0)
		return got;
	buffer[state->length] = 0;
	while (line && *line) {
		char *end = strchr(line, '\n');
		size_t length;

		if (end)
			*end = 0;
		length = strlen(line);
		if (!is_total(line) && !of_others(line, prefix)) {
			memmove(to, line, length);
			to += length;
			*to++ = '\n';
		}
		line = end ? end + 1 : NULL;
	}
	state->length = to - buffer;
	return got;
}
