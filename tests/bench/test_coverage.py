"""What the cases do not execute: named by function, and explained."""

from __future__ import annotations

from tests.bench.coverage import missed
from tests.bench.reasons import reason

SOURCE = """\
static int one(int a)
{
	if (a)
		return 1;
	return 0;
}

static __always_inline __must_check
struct thing *two(void)
{
	return kmalloc(1);
}
"""


def test_missed_lines_and_branches_are_named_by_function() -> None:
    found = [str(each) for each in missed(SOURCE, [4, 11], [[3, 0], [4, 1], [11, 0]])]
    assert found == [
        "one:3: 1 branch of if (a)",
        "one:4: return 1;",
        "two:11: return kmalloc(1);",
    ]


def test_a_reason_is_for_a_function_or_for_a_part_of_its_line() -> None:
    reasons = {"never": ["one: return 1"], "no memory": ["two"], "any": ["*: kfree"]}
    found = [(each.function, each.text) for each in missed(SOURCE, [4, 11], [[3, 0]])]
    found.append(("three", "kfree(four);"))
    assert [reason(*each, reasons) for each in found] == ["", "never", "no memory", "any"]
