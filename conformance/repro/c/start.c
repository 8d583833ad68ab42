/* Start a process that has touched nothing yet. */
static void start(int actor)
{
	int pid = fork();

	if (!pid)
		enter(actor);
	state->pid[actor] = pid;
}
