// SPDX-License-Identifier: GPL-2.0
/* The recording: lines of words, bytes in hexadecimal. */

#include "recorder.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Milliseconds between two flushes. */
#define INTERVAL 20

static FILE *output;

void open_output(const char *path)
{
	output = fopen(path, "we");
	if (!output)
		give_up(path);
	setvbuf(output, NULL, _IOFBF, 1 << 16);
}

void say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(output, format, arguments);
	va_end(arguments);
}

void say_bytes(const void *bytes, size_t length)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *byte = bytes;

	/* An empty word would be no word. */
	if (!length)
		putc_unlocked('-', output);
	for (; length; length--, byte++) {
		putc_unlocked(digits[*byte >> 4], output);
		putc_unlocked(digits[*byte & 0xf], output);
	}
}

/* Of CLOCK_MONOTONIC. */
uint64_t milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void flush_output(void)
{
	if (fflush(output))
		give_up("the recording");
}

/* What is flushed survives a crash of the kernel; a flush takes as long as many calls. */
void flush_now_and_then(void)
{
	static uint64_t last;
	uint64_t now = milliseconds();

	if (now - last < INTERVAL)
		return;
	last = now;
	flush_output();
}

void give_up(const char *what)
{
	fprintf(stderr, "uevt: recorder: %s: %s\n", what, strerror(errno));
	exit(125);
}
