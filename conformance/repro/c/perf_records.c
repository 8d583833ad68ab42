#include <stdarg.h>
#include <linux/perf_event.h>

static void describe_bytes(const unsigned char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		state->length += sprintf(buffer + state->length, " %02x", bytes[i]);
}

static __attribute__((format(printf, 1, 2))) void append(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	state->length += vsprintf(buffer + state->length, format, arguments);
	va_end(arguments);
}

/* The content of a raw record: after its common fields, with flags if interrupts were off. */
static void describe_raw(const unsigned char *body, size_t size, int thread, bool has_thread)
{
	int common;

	memcpy(&common, body + 4, sizeof(common));
	append(" raw %zu", size);
	if (has_thread && thread != common) {
		if (thread == 1)
			append(" of process 1");
		else
			append(" common_pid %d of %d", common, thread);
	}
	if (body[2] & 0xd9)
		append(" flags %#x", body[2] & 0xd9);
	append(": ");
	if (size > 8) {
		describe_bytes(body + 8, 1);
		memmove(buffer + state->length - 3, buffer + state->length - 2, 2);
		state->length--;
		describe_bytes(body + 9, size - 9);
	}
}

static void describe_sample(const unsigned char *body, size_t left, unsigned long type)
{
	int process = 0, thread = 0;
	unsigned long word;
	unsigned int size;

	if (type & PERF_SAMPLE_IP) {
		memcpy(&word, body, 8);
		if (word >> 63)
			append(" in the kernel");
		else
			append(" at %#lx", word);
		body += 8;
		left -= 8;
	}
	if (type & PERF_SAMPLE_TID) {
		memcpy(&process, body, 4);
		memcpy(&thread, body + 4, 4);
		if (process == thread)
			append(" one thread");
		else
			append(" process %d thread %d", process, thread);
		body += 8;
		left -= 8;
	}
	if (type & PERF_SAMPLE_PERIOD) {
		memcpy(&word, body, 8);
		append(" period %lu", word);
		body += 8;
		left -= 8;
	}
	if (type & PERF_SAMPLE_RAW) {
		memcpy(&size, body, 4);
		describe_raw(body + 4, size, thread, type & PERF_SAMPLE_TID);
		body += 4 + size;
		left -= 4 + size;
	}
	if (left) {
		append(" rest");
		describe_bytes(body, left);
	}
}

/* Describe a mapped perf ring buffer: head and tail, then the records between them. */
static long perf_records(const void *mapping, size_t length, unsigned long type)
{
	static unsigned char ring[1 << 20], record[1 << 16];
	const struct perf_event_mmap_page *page = (const void *)ring;
	size_t size = length - 4096;
	unsigned long position;

	if (!copy(ring, mapping, length)) {
		errno = EFAULT;
		return -1;
	}
	state->length = 0;
	append("head %llu tail %llu\n", page->data_head, page->data_tail);
	if (page->data_head - page->data_tail > size) {
		append("overwritten\n");
		return (long)length;
	}
	for (position = page->data_tail; position < page->data_head;) {
		struct perf_event_header header;
		unsigned long lost;

		for (size_t i = 0; i < sizeof(record) && i < size; i++)
			record[i] = ring[4096 + (position + i) % size];
		memcpy(&header, record, sizeof(header));
		if (header.size < sizeof(header))
			break;
		if (header.type == PERF_RECORD_SAMPLE)
			append("SAMPLE");
		else if (header.type == PERF_RECORD_LOST)
			append("LOST");
		else
			append("record %u", header.type);
		append(" misc %u size %u", header.misc, header.size);
		if (header.type == PERF_RECORD_SAMPLE) {
			describe_sample(record + 8, header.size - 8, type);
		} else if (header.type == PERF_RECORD_LOST) {
			memcpy(&lost, record + 16, sizeof(lost));
			append(" lost %lu", lost);
		} else {
			describe_bytes(record + 8, header.size - 8);
		}
		append("\n");
		position += header.size;
	}
	return (long)length;
}
