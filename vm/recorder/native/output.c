// SPDX-License-Identifier: GPL-2.0
/* The recording: lines of words, bytes in hexadecimal. */

#include "recorder.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
		fputc('-', output);
	for (; length; length--, byte++) {
		fputc(digits[*byte >> 4], output);
		fputc(digits[*byte & 0xf], output);
	}
}

/* What is written before a call survives a crash of the kernel in it. */
void flush_output(void)
{
	if (fflush(output))
		give_up("the recording");
}

void give_up(const char *what)
{
	fprintf(stderr, "uevt: recorder: %s: %s\n", what, strerror(errno));
	exit(125);
}
