#include <stdlib.h>
#include <sys/wait.h>

/* Whether int $0x80 makes a system call: elsewhere it raises SIGSEGV. */
static int runs_ia32(void)
{
	int status = 0;
	pid_t child = fork();

	if (!child) {
		/* exit(2) */
		int80(1, 32, 0, 0, 0, 0, 0);
		_exit(1);
	}
	return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 32;
}
