#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether one of the answers "0|EBUSY" is the one that was seen. */
static bool is_one_of(const char *answers, size_t length, const char *seen, size_t size)
{
	while (length) {
		const char *bar = memchr(answers, '|', length);
		size_t first = bar ? (size_t)(bar - answers) : length;

		if (first == size && !memcmp(answers, seen, size))
			return true;
		if (!bar)
			return false;
		answers += first + 1;
		length -= first + 1;
	}
	return false;
}

/* Whether "P2.0: 0 *998, EBUSY *2" is allowed by "P2.0: 0|EBUSY *1000", line by line. */
static bool conforms(const char *allowed, const char *shown)
{
	while (*allowed && *shown) {
		const char *may = strstr(allowed, ": "), *seen = strstr(shown, ": ");
		const char *end = strchr(allowed, '\n'), *last = strchr(shown, '\n'), *passes;
		long total = 0;

		if (!may || !seen || !end || !last || may - allowed != seen - shown ||
		    memcmp(allowed, shown, (size_t)(may - allowed)))
			return false;
		may += 2;
		seen += 2;
		passes = strstr(may, " *");
		while (seen < last) {
			const char *star = strstr(seen, " *"), *comma = strstr(seen, ", ");

			if (!is_one_of(may, (size_t)(passes - may), seen, (size_t)(star - seen)))
				return false;
			total += atol(star + 2);
			seen = comma && comma < last ? comma + 2 : last;
		}
		if (total != atol(passes + 2))
			return false;
		allowed = end + 1;
		shown = last + 1;
	}
	return !*allowed && !*shown;
}
