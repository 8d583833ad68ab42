#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef MEMORY
/* Watched memory of a process; content NULL is not readable. */
struct memory {
	int actor;
	uintptr_t address;
	const char *content;
	size_t length;
};

#endif
/* What a call may answer: any success, or this value, error and data. */
struct answer {
	bool any;
	long value;
	int error;
	const char *data;
	size_t length;
#ifdef COUNTED
	bool counted;			/* data is what the steps of a race may answer */
#endif
#ifdef ANSWERED_MEMORY
	const struct memory *memory;	/* ends with length 0 */
#endif
};

#define DATA(text) .data = (text), .length = sizeof(text) - 1

#ifdef WATCHED
static struct memory watched[64];
static int watches;

/* Compare this memory after every step from now on. */
static void watch(int actor, uintptr_t address, const char *content, size_t length)
{
	int i = 0;

	while (i < watches && (watched[i].actor != actor || watched[i].address != address))
		i++;
	if (i == watches)
		watches++;
	watched[i] = (struct memory){ actor, address, content, length };
}

#endif
#ifdef UNWATCHED
static void unwatch(int actor, uintptr_t address)
{
	for (int i = 0; i < watches; i++)
		if (watched[i].actor == actor && watched[i].address == address)
			watched[i--] = watched[--watches];
}

#endif
static void show(const char *data, size_t length)
{
	printf("\"");
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)data[i];

		if (c == '\n')
			printf("\\n");
		else if (c < 0x20 || c > 0x7e || c == '"' || c == '\\')
			printf("\\%03o", c);
		else
			putchar(c);
	}
	printf("\"");
}

static void show_answer(long value, int error, const char *data, size_t length)
{
	if (error) {
		const char *name = strerrorname_np(error);

		printf("-1 %s\n", name ? name : strerror(error));
		return;
	}
	printf("%ld", value);
	if (data) {
		putchar(' ');
		show(data, length);
	}
	printf("\n");
}

#ifdef WATCHED
static void show_memory(const char *label, const char *content, size_t length)
{
	printf("  %-8s%s", label, content ? "" : " not readable");
	for (size_t i = 0; content && i < length; i++)
		printf(" %02x", (unsigned char)content[i]);
	printf("\n");
}

#endif
#ifdef MEMORY
/* The content that same_memory() read last; NULL if it is not readable. */
static const char *found;

static bool same_memory(const struct memory *memory)
{
	static char bytes[1 << 16];
	bool readable = memory->length <= sizeof(bytes) &&
			read_memory(memory->actor, memory->address, bytes, memory->length);

	found = readable ? bytes : NULL;
	if (!memory->content)
		return !readable;
	return readable && !memcmp(bytes, memory->content, memory->length);
}

#endif
static bool same_data(const struct answer *answer)
{
#ifdef COUNTED
	if (answer->counted)
		return conforms(answer->data, buffer);
#endif
	return !answer->data || (state->length == (long)answer->length &&
				 !memcmp(buffer, answer->data, answer->length));
}

static bool matches(const struct answer *answer)
{
	if (state->error != answer->error)
		return false;
	if (!answer->error && !answer->any && state->value != answer->value)
		return false;
	if (!answer->error && !same_data(answer))
		return false;
#ifdef ANSWERED_MEMORY
	for (const struct memory *m = answer->memory; m && m->length; m++)
		if (!same_memory(m))
			return false;
#endif
	return true;
}

static bool matches_any(const struct answer *answers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (matches(&answers[i]))
			return true;
	return false;
}

#ifdef CHOICE
/* The first step that took another allowed course than the recorded one; 0 is none. */
static int other_course;

#endif
static void deviate(void)
{
#ifdef CHOICE
	if (other_course) {
		printf("undecided: step %d took another allowed course than recorded\n",
		       other_course);
		fflush(stdout);
		finish(4);
	}
#endif
	fflush(stdout);
	finish(1);
}

/* Print and end the program if the answer is none of the expected ones; the first is recorded. */
static void compare(const struct answer *answers, size_t count)
{
	if (!matches_any(answers, count)) {
		printf("step %d: %s\n", state->step, state->text);
		for (size_t i = 0; i < count; i++) {
			const struct answer *answer = &answers[i];

			printf("  %s ", i ? "or      " : "expected");
			if (answer->any)
				printf("success ");
			show_answer(answer->value, answer->error, answer->data, answer->length);
		}
		printf("  got      ");
		show_answer(state->value, state->error, answers->data ? buffer : NULL,
			    (size_t)(state->length > 0 ? state->length : 0));
#ifdef ANSWERED_MEMORY
		if (answers->memory)
			printf("  or the memory of a process differs\n");
#endif
		deviate();
	}
#ifdef WATCHED
	for (int i = 0; i < watches; i++) {
		if (same_memory(&watched[i]))
			continue;
		printf("step %d: %s\n  memory at %#lx\n", state->step, state->text,
		       (unsigned long)watched[i].address);
		show_memory("expected", watched[i].content, watched[i].length);
		show_memory("got", found, watched[i].length);
		deviate();
	}
#endif
#ifdef CHOICE
	if (!other_course && !matches(answers))
		other_course = state->step;
#endif
}
