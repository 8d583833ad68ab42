#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* The current step and what its call answered; data is in the buffer. */
static struct {
	int step;
	const char *text;
	long value, length;
	int error;
} answered, *const state = &answered;
static char buffer[2 << 20];

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
static void begin(int number, const char *text)
{
	state->step = number;
	state->text = text;
	state->length = -1;
	errno = 0;
}

static void answer(long value)
{
	state->value = value;
	state->error = value == -1 ? errno : 0;
	if (state->length < 0)
		state->length = value;
}

static void finish(int status)
{
	exit(status);
}

#ifdef MEMORY
#define read_memory(actor, address, to, length) copy(to, (const void *)(address), length)
#endif
