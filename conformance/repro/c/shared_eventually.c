/* Whether MAIN wants the call to be repeated. */
static bool asked_again(int number)
{
	while (load(&state->turn) == number && load(&state->wanted) <= load(&state->posted))
		usleep(500);
	if (load(&state->turn) != number)
		return false;
	state->length = -1;
	errno = 0;
	return true;
}

/* Repeat a call until it answers as expected, or for ten seconds. */
#define EVENTUALLY(number, actor, call, ...) \
	do { \
		if (begin(me, from, number, actor, #call)) \
			do \
				answer(me, actor, number, (long)(call)); \
			while (me == MAIN ? \
			       retry((const struct answer[]){ __VA_ARGS__ }, \
				     LENGTH(((const struct answer[]){ __VA_ARGS__ }))) : \
			       asked_again(number)); \
		else if (me == MAIN) \
			ask((const struct answer[]){ __VA_ARGS__ }, \
			    LENGTH(((const struct answer[]){ __VA_ARGS__ }))); \
	} while (0)
