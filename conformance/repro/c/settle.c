/* Compare the answer of a step that any process performed. */
static void settle(const struct answer *answers, size_t count)
{
	wait_until(&state->posted, state->wanted);
	if (state->leaving)
		wait_for_end(state->leaving);
	compare(answers, count);
}
