#include <stdbool.h>
#include <time.h>
#include <unistd.h>

/* Whether to repeat the call; waits a little before. */
static bool retry(const struct answer *answers, size_t count)
{
	static int step;
	static time_t end;

	if (step != state->step) {
		step = state->step;
		end = time(NULL) + 10;
	}
	if (matches_any(answers, count) || time(NULL) > end)
		return false;
	usleep(2000);
	return true;
}
