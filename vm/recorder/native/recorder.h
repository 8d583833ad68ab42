/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Record the user_events system calls of a program with ptrace(2), for uevt client.
 *
 * main.c follows tasks, tasks.c lists them, turn.c lets one call of interest run at a time, calls.c
 * and messages.c choose and write down the calls, compat.c translates those of 32-bit callers,
 * memory.c and files.c read what they refer to, listener.c enables events and reads their records
 * back, output.c writes lines.  vm/recorder/recording.py describes the lines.
 */

#ifndef RECORDER_H
#define RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PAGE_SIZE 4096ul
#define TRACEFS "/sys/kernel/tracing"
#define ARGUMENTS 6
/* Bytes of an enable word that are recorded, with any bit that the kernel accepts. */
#define WORD 8

/* A system call, with the number it has on x86-64 whatever the entry. */
struct call {
	int number;
	bool compat;
	uint64_t arguments[ARGUMENTS];
};

/* What is written down about a call, and when. */
enum interest {
	IGNORED,
	/* At the entry: calls on tracefs files. */
	ON_ENTRY,
	/* At the exit, if the result is of interest: calls that return descriptors or may block. */
	ON_EXIT,
	/* By the ptrace event: fork. */
	ON_EVENT,
};

struct task {
	struct task *next;
	pid_t tid;
	pid_t tgid;
	/* Whether it is stopped until its turn, and its place among those that are. */
	bool waiting;
	uint64_t ticket;
	/* Whether its creator's event was seen; until then it stays stopped. */
	bool known;
	/* When it was seen first, in milliseconds. */
	uint64_t since;
	/* Whether waitpid() has returned a status that was not handled yet. */
	bool reported;
	int status;
	bool in_call;
	/* Whether its exit was reported: it makes no more calls. */
	bool exiting;
	enum interest interest;
	struct call call;
};

/* main.c */
void resume(struct task *task, int signal);
bool begin_turn(struct task *task);

/* tasks.c */
struct task *tasks(void);
struct task *find_task(pid_t tid);
struct task *add_task(pid_t tid);
void remove_task(struct task *task);
struct task *other_thread(const struct task *task, bool exiting);

/* turn.c */
bool take_turn(struct task *task);
void end_turn(struct task *task);
void pass_turn(struct task *from, struct task *to);
void drop_from_turn(struct task *task);
void allow_overlap(void);

/* calls.c */
extern unsigned int name_offset;
enum interest interest_of(struct task *task, bool *exclusive);
void write_call(const struct task *task);
void write_returned(const struct task *task, int64_t result);
void write_entry(struct task *task);
void write_exit(struct task *task, int64_t result);
bool makes_copy(const struct task *task);
uint64_t clone_flags(const struct task *task);

/* compat.c */
void translate_compat(struct task *task);

/* messages.c */
void write_sent(struct task *task);
void write_messages(struct task *task, int64_t result);

/* words.c */
void add_word(pid_t tgid, uint64_t address);
void inherit_words(pid_t parent, pid_t child);
void drop_words(pid_t tgid);
void write_words(const struct task *task);

/* memory.c */
size_t read_memory(pid_t tid, uint64_t address, void *to, size_t length);
uint64_t load_number(pid_t tid, uint64_t address, size_t size);
void write_memory(pid_t tid, uint64_t address, size_t length);
void write_string(pid_t tid, uint64_t address, size_t limit);
void write_rights(pid_t tid, uint64_t address);

/* files.c */
bool is_tracefs(pid_t tid, int fd);
void write_file(pid_t tid, int fd);
void write_files(pid_t tid);
pid_t read_process(struct task *task);
void write_credentials(pid_t tid);

/* listener.c */
enum listener { LISTENER_NONE, LISTENER_FTRACE, LISTENER_PERF };
extern enum listener listener;
void begin_listening(void);
void listen_to(struct task *task, uint64_t name);
void collect_records(void);

/* perf.c */
int perf_listen(int id, int cpu);
void perf_collect(void);

/* output.c */
uint64_t milliseconds(void);
void open_output(const char *path);
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void say_bytes(const void *bytes, size_t length);
void flush_output(void);
void flush_now_and_then(void);
__attribute__((noreturn)) void give_up(const char *what);

#endif
