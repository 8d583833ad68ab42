#include <sys/syscall.h>
/*
 * read(2) of a page of trace_pipe_raw, described: see struct buffer_data_page.  The id of the event
 * is in a file; sizes are those of the payloads, whose padding is left out.
 */
static long page_records(int descriptor, const char *path, size_t count, const int *sizes)
{
	static unsigned char page[4096];
	static char text[1 << 16];
	long id = number_in(path), got = syscall(SYS_read, descriptor, page, sizeof(page));
	unsigned long word, commit, position = 0, extended = 0;
	const unsigned char *data = page + 16;
	size_t used = 0, shown = 0;
	bool zero = true;
	int pid;

	if (got < 0)
		return -1;
	if (got < 16) {
		state->length = sprintf(buffer, "%ld bytes\n", got);
		return got;
	}
	memcpy(&word, page + 8, sizeof(word));
	commit = word & ~(3ul << 30);
	while (position < commit) {
		unsigned int kind = data[position] & 31, length = kind * 4, type;
		unsigned long start = position;

		position += 4;
		if (kind == 30 || kind == 31) {
			extended += 8;
			position += 4;
			continue;
		}
		if (!kind || kind == 29) {
			memcpy(&length, data + position, sizeof(length));
			length = length > 4 ? length - 4 : 0;
			position += 4;
		}
		if (kind == 29 || length < 8) {
			used += (size_t)sprintf(text + used, "event %u of %u bytes at %lu\n", kind,
						length, start);
		} else {
			size_t size = length;

			if (shown < count && (size_t)sizes[shown] + 8 < size)
				size = (size_t)sizes[shown] + 8;
			shown++;
			type = data[position] | (unsigned int)data[position + 1] << 8;
			memcpy(&pid, data + position + 4, sizeof(pid));
			used += (size_t)sprintf(text + used,
						"type_len %u length %u type %s flags %d pid %s: ", kind,
						length, type == id ? "own" : "other",
						data[position + 2] & 0xd9,
						pid == getpid() ? "own" : "other");
			for (size_t i = 8; i < size; i++)
				used += (size_t)sprintf(text + used, "%s%02x", i > 8 ? " " : "",
							data[position + i]);
			used += (size_t)sprintf(text + used, "\n");
		}
		position += length;
	}
	for (unsigned long i = commit; i < sizeof(page) - 16; i++)
		zero = zero && !data[i];
	text[used] = 0;
	state->length = sprintf(buffer, "commit %lu\n%s%s%s\n", commit - extended,
				word & 3ul << 30 ? "missed\n" : "", text,
				zero ? "rest zero" : "rest");
	return got;
}
