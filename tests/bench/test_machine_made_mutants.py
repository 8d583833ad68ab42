"""Mutants made by machine: what is changed, and that one choice acts at a time."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.bench.mutation.mutants import Instrumented

SOURCE = """\
#include <stdbool.h>
#define EINVAL 22
#define EFAULT 14
static int calls;
static void called(void) { calls++; }
static int __init started(void) { return 1 < 2; }
static int judged(int a, int b)
{
	int limit[4];

	if (a < 2 && !b)
		return -EINVAL;
	called();
	return a + (int)sizeof(limit);
}
"""
OTHER = """\
#include <linux/list.h>
static bool passed(unsigned int flags, int *list)
{
	int *each;

	list_for_each(each, list)
		flags |= FLAG_ONE;
	list += 1;
	list = first(list);
	return flags & FLAG_TWO ? true : MOST_FLAGS;
}
"""
# What the kernel gives, for a program.
STUBS = """\
#define __init
#define unlikely(x) (x)
#define READ_ONCE(x) (x)
#define __always_inline inline
#include <stdlib.h>
#include <string.h>
struct kernel_param { int unused; };
struct kernel_param_ops {
	int (*set)(const char *, const struct kernel_param *);
	int (*get)(char *, const struct kernel_param *);
};
static int param_set_int(const char *text, const struct kernel_param *p) { return atoi(text) + !p; }
static int param_get_int(char *text, const struct kernel_param *p) { return !text + !p; }
#define module_param_cb(name, ops, ...) __typeof__(*(ops)) *name = ops;
#define module_param_array_named(...)
"""
MAIN = """\
#include <stdio.h>
int main(void)
{
	for (uevt_mutant = 0; uevt_mutant < %d; uevt_mutant++) {
		calls = 0;
		printf("%%d %%d ", judged(1, 0), judged(2, 0));
		printf("%%d %%d ", judged(1, 1), judged(5, 7));
		printf("%%d\\n", calls);
	}
	return started();
}
"""


def test_operators() -> None:
    made = Instrumented(SOURCE).mutants
    assert [(each.operator, each.before, each.after) for each in made] == [
        ("delete", "calls++;", ""),
        ("number", "2", "2 + 1"),
        ("relational", "a < 2", "a <= 2"),
        ("drop not", "!b", "!!(b)"),
        ("drop clause", "a < 2 && !b", "!!(a < 2)"),
        ("drop clause", "a < 2 && !b", "!!(!b)"),
        ("errno", "-EINVAL", "-EFAULT"),
        ("delete", "called();", ""),
        ("arithmetic", "a + (int)sizeof(limit)", "a - (int)sizeof(limit)"),
    ]
    assert {each.function for each in made} == {"called", "judged"}


def test_order_flags_and_booleans() -> None:
    """The head of a loop that is a macro keeps its body."""
    assert [each.change for each in Instrumented(OTHER).mutants] == [
        "flag: FLAG_ONE -> 0",
        "number: 1 -> 1 + 1",
        "delete: list += 1;",
        "delete: list = first(list);",
        "swap: list += 1; list = first(list); -> list = first(list); list += 1;",
        "flag: FLAG_TWO -> 0",
        "arithmetic: flags & FLAG_TWO -> flags | FLAG_TWO",
        "boolean: true -> false",
        "flag: MOST_FLAGS -> MOST_FLAGS + 1",
    ]


def test_lines_can_be_left_alone() -> None:
    made = Instrumented(SOURCE, frozenset({10}))
    assert not any(each.line == 10 for each in made.mutants)


@pytest.fixture
def answers(tmp_path: Path) -> list[str]:
    """What the functions return under each mutant, without one first."""
    made = Instrumented(SOURCE)
    text = STUBS + made.text.replace("#include <linux/moduleparam.h>", "")
    (tmp_path / "mutants.c").write_text(text + MAIN % (len(made.mutants) + 1))
    program = tmp_path / "mutants"
    subprocess.run(["gcc", "-Wall", "-o", program, tmp_path / "mutants.c"], check=True, timeout=60)
    shown = subprocess.run([program], capture_output=True, text=True, check=False, timeout=60)
    return shown.stdout.splitlines()


def test_each_mutant_acts_alone(answers: list[str]) -> None:
    assert answers[0] == "-22 18 17 21 3"
    changed = [answer for answer in answers[1:] if answer != answers[0]]
    assert len(changed) == len(answers) - 1
    assert len(set(changed)) >= 6
