// SPDX-License-Identifier: GPL-2.0
/* The list of tasks, the newest first. */

#include "recorder.h"

#include <stdlib.h>

static struct task *all;

struct task *tasks(void)
{
	return all;
}

struct task *find_task(pid_t tid)
{
	struct task *task = all;

	while (task && task->tid != tid)
		task = task->next;
	return task;
}

struct task *add_task(pid_t tid)
{
	struct task *task = calloc(1, sizeof(*task));

	if (!task)
		give_up("memory");
	task->tid = task->tgid = tid;
	task->since = milliseconds();
	task->next = all;
	all = task;
	return task;
}

void remove_task(struct task *task)
{
	struct task **link = &all;

	while (*link != task)
		link = &(*link)->next;
	*link = task->next;
	drop_from_turn(task);
	free(task);
}

/* Another thread of a task's process: one that goes on, or one that is about to end. */
struct task *other_thread(const struct task *task, bool exiting)
{
	struct task *other = all;

	while (other &&
	       (other == task || other->tgid != task->tgid || other->exiting != exiting))
		other = other->next;
	return other;
}
