/* execve(2) of this program, which goes on with the next step. */
static long execute(int me)
{
	char actor[16], *arguments[] = { "repro", actor, NULL }, *environment[] = { NULL };
	int pid = state->pid[me];

	snprintf(actor, sizeof(actor), "%d", me);
	state->from[me] = load(&state->turn) + 1;
	/* A thread takes the id of its leader. */
	if (gettid() != getpid())
		state->pid[me] = getpid();
	execve("/proc/self/exe", arguments, environment);
	state->pid[me] = pid;
	return -1;
}
