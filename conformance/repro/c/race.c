/*
 * A race: the processes of its tracks start at the same moment, repeat their calls, and count the
 * answers of each.  Raw system calls: threads share errno.
 */
static void begin_race(int me, int number)
{
	if (me == MAIN)
		begin(me, 0, number, MAIN, "race");
}

static bool enter_race(int me, int from, int number, int actor, int tracks)
{
	if (number < from || me != actor)
		return false;
	wait_until(&state->turn, number);
	__atomic_add_fetch(&state->gate, 1, __ATOMIC_SEQ_CST);
	while (load(&state->gate) < tracks)
		;
	return true;
}

static long result(int track, int step, long value)
{
	int i = 0;

	while (i < 4 && state->tally[track][step][i].count &&
	       state->tally[track][step][i].value != value)
		i++;
	state->tally[track][step][i].value = value;
	state->tally[track][step][i].count++;
	return value;
}

static void leave_race(void)
{
	__atomic_add_fetch(&state->finished, 1, __ATOMIC_SEQ_CST);
	raw(SYS_futex, (long)&state->finished, FUTEX_WAKE, INT_MAX, 0, 0, 0);
}

static int sorts_before(const void *a, const void *b)
{
	const char *one = *(const char *const *)a, *other = *(const char *const *)b;
	bool digits = *one >= '0' && *one <= '9', others = *other >= '0' && *other <= '9';

	if (digits != others)
		return digits ? -1 : 1;
	if (strlen(one) != strlen(other))
		return strlen(one) < strlen(other) ? -1 : 1;
	return strcmp(one, other);
}

/* One line for each call: how often each answer came. */
static void show_tally(const char *name, int track, int step)
{
	char texts[5][64], *lines[5];
	int used = 0;

	for (int i = 0; i < 5; i++) {
		long count = state->tally[track][step][i].count;
		long value = state->tally[track][step][i].value;
		const char *error = value < 0 && value > -4096 ? strerrorname_np((int)-value) : NULL;

		if (!count)
			continue;
		if (i == 4)
			snprintf(texts[used], sizeof(texts[0]), "others *%ld", count);
		else if (error)
			snprintf(texts[used], sizeof(texts[0]), "%s *%ld", error, count);
		else
			snprintf(texts[used], sizeof(texts[0]), "%ld *%ld", value, count);
		lines[used] = texts[used];
		used++;
	}
	qsort(lines, (size_t)used, sizeof(*lines), sorts_before);
	state->length += sprintf(buffer + state->length, "%s.%d: ", name, step);
	for (int i = 0; i < used; i++)
		state->length += sprintf(buffer + state->length, "%s%s", i ? ", " : "", lines[i]);
	state->length += sprintf(buffer + state->length, "\n");
}

struct track {
	const char *name;
	int steps;
	int leaver;	/* an actor that ends with its track */
};

/* MAIN: wait for the end of a race and describe it. */
static void end_race(int me, int count, const struct track *tracks)
{
	if (me != MAIN)
		return;
	wait_until(&state->finished, count);
	state->length = 0;
	for (int i = 0; i < count; i++) {
		if (tracks[i].leaver)
			wait_for_end(tracks[i].leaver);
		for (int step = 0; step < tracks[i].steps; step++)
			show_tally(tracks[i].name, i, step);
	}
	buffer[state->length] = 0;
	state->gate = 0;
	state->finished = 0;
	memset(state->tally, 0, sizeof(state->tally));
	state->value = 0;
	state->error = 0;
	set(&state->posted, 1);
}
