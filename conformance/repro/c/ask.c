/* Let another process repeat a call until it answers as expected. */
static void ask(const struct answer *answers, size_t count)
{
	wait_until(&state->posted, state->wanted);
	while (retry(answers, count)) {
		__atomic_add_fetch(&state->wanted, 1, __ATOMIC_SEQ_CST);
		wait_until(&state->posted, state->wanted);
	}
}
