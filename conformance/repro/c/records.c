#include <ctype.h>
#include <stdarg.h>

static char described[2 << 20];
static size_t described_length;

static __attribute__((format(printf, 1, 2))) void describe(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	described_length += (size_t)vsnprintf(described + described_length,
					      sizeof(described) - described_length, format,
					      arguments);
	va_end(arguments);
}

/* What is in front of a record: "task-pid (tgid) [cpu] flags time: ". */
struct head {
	long pid;
	char flags[32];
	double time;
	const char *body;
};

static bool parse_head(const char *line, struct head *head)
{
	const char *cpu = line, *before;
	int used = 0;

	for (;;) {
		cpu = strchr(cpu, '[');
		if (!cpu)
			return false;
		if (sscanf(cpu, "[%*d] %31s %lf: %n", head->flags, &head->time, &used) == 2 && used)
			break;
		cpu++;
		used = 0;
	}
	/* %n counts the blanks of the body as well. */
	head->body = strstr(strstr(cpu, head->flags) + strlen(head->flags), ": ") + 2;
	before = cpu;
	while (before > line && before[-1] == ' ')
		before--;
	if (before > line && before[-1] == ')') {
		while (before > line && *before != '(')
			before--;
		while (before > line && before[-1] == ' ')
			before--;
	}
	while (before > line && isdigit((unsigned char)before[-1]))
		before--;
	if (before == line || before[-1] != '-')
		return false;
	head->pid = atol(before);
	return true;
}

static struct {
	long pids[16];
	int tasks;
	double time;
	bool in_dump, in_stack;
	char dump[1 << 17];
	size_t dumped;
	const int *sizes;
	size_t sizes_left;
} reader;

static void end_dump(void)
{
	size_t bytes = reader.dumped / 3, record, padded;

	if (!reader.in_dump)
		return;
	reader.in_dump = false;
	if (reader.sizes_left) {
		record = 8 + (size_t)*reader.sizes++;
		reader.sizes_left--;
		padded = (record + 3) / 4 * 4 < 12 ? 12 : (record + 3) / 4 * 4;
		if (bytes == padded)
			bytes = record;
	}
	if (bytes > 8)
		describe("%.*s", (int)((bytes - 8) * 3 - 1), reader.dump + 24);
	describe("\n");
}

/* A line of a dump: "00000000: 01 02 ...  text". */
static bool is_dump(const char *line)
{
	int i = 0;

	while (i < 8 && isxdigit((unsigned char)line[i]))
		i++;
	return i == 8 && line[8] == ':' && line[9] == ' ';
}

static void describe_record(const struct head *head)
{
	int task = 0;

	while (task < reader.tasks && reader.pids[task] != head->pid)
		task++;
	if (task == reader.tasks && task < 15)
		reader.pids[reader.tasks++] = head->pid;
	describe("task %d", task + 1);
	if (head->flags[0] != '.' || head->flags[2] != '.')
		describe(" flags %c%c", head->flags[0], head->flags[2]);
	if (head->time < reader.time)
		describe(" earlier");
	reader.time = head->time;
	reader.in_stack = !strcmp(head->body, "<stack trace>");
	if (!*head->body) {
		reader.in_dump = true;
		reader.dumped = 0;
		describe(" dump: ");
	} else if (!strncmp(head->body, "Unknown type ", 13)) {
		describe(": Unknown type N\n");
	} else {
		describe(": %s\n", head->body);
	}
}

static void describe_line(const char *line)
{
	struct head head;
	char text[64];

	if (reader.in_stack && !strncmp(line, " => ", 4))
		return;
	if (reader.in_dump && is_dump(line)) {
		for (int i = 0; i < 16 && line[10 + 3 * i] != ' '; i++) {
			memcpy(reader.dump + reader.dumped, line + 10 + 3 * i, 3);
			reader.dumped += 3;
		}
		return;
	}
	end_dump();
	reader.in_stack = false;
	if (parse_head(line, &head))
		describe_record(&head);
	else if (sscanf(line, "# entries-in-buffer/entries-written: %63s", text) == 1)
		describe("entries: %s\n", text);
	else if (sscanf(line, "# * Snapshot is %63s *", text) == 1)
		describe("snapshot: %s\n", text);
	else if (*line != '#')
		describe("line: %s\n", line);
}

/*
 * Describe the text of a trace: a line for each record, without task, processor and time.  Before
 * 6.4 the kernel dumps records; sizes are those of their payloads.
 */
static long records(long got, size_t count, const int *sizes)
{
	const char *line = buffer;

	if (got < 0)
		return got;
	if (state->length < 0)
		state->length = got;
	buffer[state->length] = 0;
	memset(&reader, 0, sizeof(reader));
	reader.sizes = sizes;
	reader.sizes_left = count;
	described_length = 0;
	while (line < buffer + state->length) {
		char *end = memchr(line, '\n', (size_t)(buffer + state->length - line));
		const char *text = line;

		if (end)
			*end = 0;
		/* The text of a dump ends with a NUL. */
		if (reader.in_dump && !*text && (end ? end : buffer + state->length) > text) {
			end_dump();
			text++;
			if (*text)
				describe_line(text);
		} else {
			describe_line(text);
		}
		line = end ? end + 1 : buffer + state->length;
	}
	end_dump();
	memcpy(buffer, described, described_length);
	state->length = (long)described_length;
	return got;
}
