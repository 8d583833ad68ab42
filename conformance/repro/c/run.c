#include <stdio.h>
#include <sys/wait.h>

/* Run a line of sh; its output in the buffer, its exit code. */
static long run(const char *line)
{
	FILE *output;
	int status;

	fflush(stdout);
	output = popen(line, "re");
	if (!output)
		return -1;
	state->length = (long)fread(buffer, 1, 65536, output);
	status = pclose(output);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
