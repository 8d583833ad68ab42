/* End this process, or with SYS_exit this thread. */
static long leave(int me, int number, int status)
{
	state->value = 0;
	state->error = 0;
	state->leaving = me;
	set(&state->posted, state->posted + 1);
	return raw(number, status, 0, 0, 0, 0, 0);
}
