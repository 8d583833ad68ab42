// SPDX-License-Identifier: GPL-2.0
/*
 * One call of interest at a time: the model needs to know their order.  A task that enters such a
 * call while another one is in its own stays stopped until that one has ended.
 */

#include "recorder.h"

static struct task *holder;

/* Whether the task may proceed now; else it is resumed when its turn comes. */
bool take_turn(struct task *task)
{
	if (holder && holder != task) {
		task->stage = WAITING;
		return false;
	}
	holder = task;
	return true;
}

static void let_next(void)
{
	for (struct task *task = tasks(); task; task = task->next) {
		if (task->stage != WAITING)
			continue;
		task->stage = RUNNING;
		holder = task;
		/* Its memory may have changed while it was waiting. */
		if (task->interest == ON_ENTRY)
			write_entry(task);
		resume(task, 0);
		return;
	}
}

void end_turn(struct task *task)
{
	if (holder != task)
		return;
	holder = NULL;
	let_next();
}

void drop_from_turn(struct task *task)
{
	task->stage = RUNNING;
	end_turn(task);
}

/* A call does not return, perhaps because it needs another task to go on. */
void allow_overlap(void)
{
	bool waiting = false;

	for (struct task *task = tasks(); task; task = task->next)
		waiting |= task->stage == WAITING;
	if (!holder || !waiting)
		return;
	say("overlap %d\n", holder->tid);
	holder = NULL;
	let_next();
}
