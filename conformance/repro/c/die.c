static long die(int actor)
{
	long value = kill(state->pid[actor], SIGKILL);

	wait_for_end(actor);
	return value;
}
