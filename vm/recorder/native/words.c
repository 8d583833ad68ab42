// SPDX-License-Identifier: GPL-2.0
/* The enable words that each process has registered, to look at them when they are inherited or end. */

#include "recorder.h"

#include <stdlib.h>

/* Words of one process that are remembered. */
#define MOST 4096

struct words {
	struct words *next;
	pid_t tgid;
	size_t count;
	uint64_t addresses[MOST];
};

static struct words *all;

static struct words *find(pid_t tgid)
{
	struct words *words = all;

	while (words && words->tgid != tgid)
		words = words->next;
	return words;
}

static struct words *make(pid_t tgid)
{
	struct words *words = malloc(sizeof(*words));

	if (!words)
		give_up("memory");
	words->tgid = tgid;
	words->count = 0;
	words->next = all;
	all = words;
	return words;
}

void add_word(pid_t tgid, uint64_t address)
{
	struct words *words = find(tgid);

	if (!words)
		words = make(tgid);
	for (size_t at = 0; at < words->count; at++)
		if (words->addresses[at] == address)
			return;
	if (words->count < MOST)
		words->addresses[words->count++] = address;
}

void inherit_words(pid_t parent, pid_t child)
{
	const struct words *from = find(parent);

	if (!from || parent == child)
		return;
	for (size_t at = 0; at < from->count; at++)
		add_word(child, from->addresses[at]);
}

void drop_words(pid_t tgid)
{
	struct words **link = &all, *words = find(tgid);

	if (!words)
		return;
	while (*link != words)
		link = &(*link)->next;
	*link = words->next;
	free(words);
}

/* The words of a task's process. */
void write_words(const struct task *task)
{
	const struct words *words = find(task->tgid);

	for (size_t at = 0; words && at < words->count; at++)
		write_memory(task->tid, words->addresses[at], WORD);
}
