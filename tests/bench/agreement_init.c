// SPDX-License-Identifier: GPL-2.0
/*
 * Process 1 of a guest that runs the programs of /programs one after the other and writes what they
 * print, and how they end, to the second serial port.
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define TRACEFS "/sys/kernel/tracing"
#define SECONDS 150

static void mount_one(const char *type, const char *place, const char *options)
{
	mkdir(place, 0755);
	mount(type, place, type, 0, options);
}

static void put(const char *path, const char *text, int flags)
{
	int file = open(path, O_WRONLY | flags);

	if (file < 0)
		return;
	if (write(file, text, strlen(text)) < 0)
		flags = 0;
	close(file);
}

static void remove_instances(void)
{
	DIR *directory = opendir(TRACEFS "/instances");
	struct dirent *entry;
	char path[512];

	while (directory && (entry = readdir(directory))) {
		snprintf(path, sizeof(path), TRACEFS "/instances/%s", entry->d_name);
		rmdir(path);
	}
	if (directory)
		closedir(directory);
}

/* A program that fails may leave anything behind; it is repeated alone in a guest of its own. */
static void clean_up(void)
{
	kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	umount2("/run", MNT_DETACH);
	mount_one("tmpfs", "/run", "mode=755");
	put(TRACEFS "/events/enable", "0", 0);
	put(TRACEFS "/events/user_events/filter", "0", 0);
	remove_instances();
	put(TRACEFS "/dynamic_events", "", O_TRUNC);
	put(TRACEFS "/set_event_pid", "", O_TRUNC);
	put(TRACEFS "/set_event_notrace_pid", "", O_TRUNC);
	put("/proc/sys/kernel/user_events_max", "32767", 0);
	put(TRACEFS "/tracing_on", "1", 0);
	put(TRACEFS "/error_log", "", O_TRUNC);
	put(TRACEFS "/snapshot", "0", 0);
	put(TRACEFS "/trace", "", O_TRUNC);
	usleep(50000);
}

static int run(const char *name)
{
	time_t end = time(NULL) + SECONDS;
	char path[512];
	int status;
	pid_t pid;

	snprintf(path, sizeof(path), "/programs/%s", name);
	pid = fork();
	if (!pid) {
		execl(path, path, NULL);
		_exit(127);
	}
	while (!waitpid(pid, &status, WNOHANG)) {
		if (time(NULL) > end) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			break;
		}
		usleep(2000);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(void)
{
	struct dirent **entries;
	struct termios line;
	int count, port;

	mount_one("proc", "/proc", "");
	mount_one("sysfs", "/sys", "");
	mount_one("devtmpfs", "/dev", "");
	mount_one("tmpfs", "/tmp", "mode=1777");
	mount_one("tmpfs", "/run", "mode=755");
	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, "");
	mount("tracefs", TRACEFS, "tracefs", 0, "");
	put("/proc/sys/kernel/perf_event_paranoid", "2", 0);
	put("/proc/sys/kernel/unprivileged_bpf_disabled", "2", 0);
	port = open("/dev/ttyS1", O_RDWR | O_NOCTTY);
	tcgetattr(port, &line);
	cfmakeraw(&line);
	tcsetattr(port, TCSANOW, &line);
	dup2(port, 1);
	dup2(port, 2);
	setvbuf(stdout, NULL, _IONBF, 0);
	count = scandir("/programs", &entries, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		const char *name = entries[i]->d_name;

		if (*name == '.')
			continue;
		printf("BEGIN %s\n", name);
		printf("END %s %d\n", name, run(name));
		clean_up();
	}
	printf("DONE\n");
	tcdrain(1);
	reboot(RB_POWER_OFF);
	return 0;
}
