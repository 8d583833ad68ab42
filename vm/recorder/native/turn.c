// SPDX-License-Identifier: GPL-2.0
/*
 * One call of interest at a time: the model needs to know their order.  A task that enters such a
 * call while another one is in its own stays stopped until that one has ended.
 */

#include "recorder.h"

/* Milliseconds after which a call that does not return may be overtaken. */
#define PATIENCE 1000

static struct task *holder;
/* Since when the first task waits for this holder. */
static uint64_t waiting_since;

/* The task that has waited longest. */
static struct task *first_waiting(void)
{
	struct task *first = NULL;

	for (struct task *task = tasks(); task; task = task->next)
		if (task->waiting && (!first || task->ticket < first->ticket))
			first = task;
	return first;
}

/* Whether both are about to end, in one process. */
static bool end_together(const struct task *one, const struct task *other)
{
	return one->exiting && other->exiting && one->tgid == other->tgid;
}

/* Whether the task may proceed now; else it is resumed when its turn comes. */
bool take_turn(struct task *task)
{
	static uint64_t tickets;

	if (holder && holder != task && !end_together(holder, task)) {
		if (!first_waiting())
			waiting_since = milliseconds();
		task->waiting = true;
		task->ticket = ++tickets;
		return false;
	}
	holder = task;
	return true;
}

static void let_next(void)
{
	struct task *task;

	while (!holder && (task = first_waiting())) {
		task->waiting = false;
		holder = task;
		waiting_since = milliseconds();
		if (!begin_turn(task))
			holder = NULL;
	}
}

void end_turn(struct task *task)
{
	if (holder != task)
		return;
	holder = NULL;
	let_next();
}

/* One thread goes on for another: a process keeps the turn until its last one has ended. */
void pass_turn(struct task *from, struct task *to)
{
	if (holder == from)
		holder = to;
}

void drop_from_turn(struct task *task)
{
	task->waiting = false;
	end_turn(task);
}

/* A call does not return, perhaps because it needs another task to go on. */
void allow_overlap(void)
{
	if (!holder || milliseconds() - waiting_since < PATIENCE || !first_waiting())
		return;
	say("overlap %d\n", holder->tid);
	holder = NULL;
	let_next();
}
