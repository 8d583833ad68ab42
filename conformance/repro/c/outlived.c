#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Run the program in a process of its own.  Once it has ended, its events must go as well. */
static int outlived(int (*perform)(void), const char *prefix)
{
	static char text[1 << 20];
	pid_t child = fork();
	int status, file;
	size_t length;
	ssize_t got;

	if (child == 0)
		exit(perform());
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return 4;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	for (int second = 0; second < 30; second++) {
		file = open("/sys/kernel/tracing/dynamic_events", O_RDONLY);
		length = 0;
		while ((got = read(file, text + length, sizeof(text) - 1 - length)) > 0)
			length += got;
		text[length] = 0;
		close(file);
		if (!strstr(text, prefix))
			return 0;
		sleep(1);
	}
	printf("all processes have ended, and dynamic_events still lists\n%s", text);
	return 1;
}
