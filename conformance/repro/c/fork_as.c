/* fork(2); the child goes on as another actor, and MAIN is its parent. */
static long fork_as(int child, int *me)
{
	long pid;

	pid = syscall(SYS_clone, SIGCHLD | (*me == MAIN ? 0 : CLONE_PARENT), 0, 0, 0, 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		*me = child;
	} else if (pid > 0) {
		state->pid[child] = (int)pid;
	}
	return pid;
}
