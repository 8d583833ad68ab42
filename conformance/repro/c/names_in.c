#include <sys/syscall.h>
#include <dirent.h>

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* getdents64(2): the names that begin with a prefix, sorted; the value is that of the call. */
static long names_in(int directory, const char *prefix)
{
	static char entries[1 << 16], *names[4096];
	long got = syscall(SYS_getdents64, directory, entries, sizeof(entries)), position = 0;
	size_t count = 0;

	if (got < 0)
		return -1;
	while (position < got) {
		struct dirent64 *entry = (struct dirent64 *)(entries + position);

		if (!strncmp(entry->d_name, prefix, strlen(prefix)))
			names[count++] = entry->d_name;
		position += entry->d_reclen;
	}
	qsort(names, count, sizeof(*names), compare_names);
	state->length = 0;
	for (size_t i = 0; i < count; i++)
		state->length += sprintf(buffer + state->length, "%s\n", names[i]);
	return got;
}
