#define STACK_SIZE (256 << 10)

static int run_task(void *argument)
{
	int me = (int)(long)argument;

	if (state->pid[me] < 0) {
		/* vfork: the parent is suspended. */
		state->pid[me] = (int)raw(SYS_gettid, 0, 0, 0, 0, 0, 0);
		state->value = state->pid[me];
		state->error = 0;
		set(&state->posted, state->posted + 1);
	}
	enter(me);
	return 0;
}

/* clone(2); the child begins with the next step, and MAIN is its parent unless it is a thread. */
static long clone_as(int child, int me, int flags)
{
	char *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	int pid;

	if (!(flags & CLONE_THREAD))
		flags |= SIGCHLD | (me == MAIN ? 0 : CLONE_PARENT);
	state->from[child] = load(&state->turn) + 1;
	state->pid[child] = flags & CLONE_VFORK ? -1 : 0;
	pid = clone(run_task, stack + STACK_SIZE, flags, (void *)(long)child);
	if (pid > 0 && !(flags & CLONE_VFORK))
		state->pid[child] = pid;
	return pid;
}
