"""Numbers of system calls, compared with the kernel's headers."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from conformance.ops.system_calls import MACHINES, number_and_arguments
from vm.guest import numbers

HEADERS = {
    "x86_64": ("x86_64-linux-gnu/asm/unistd_64.h", r"#define __NR_(\w+) (\d+)"),
    "aarch64": ("asm-generic/unistd.h", r"#define __NR(?:3264)?_(\w+) (\d+)"),
}


def defined(machine: str) -> dict[str, int]:
    name, pattern = HEADERS[machine]
    text = next(Path("/usr/include").glob(name)).read_text()
    return {each: int(number) for each, number in re.findall(pattern, text)}


@pytest.mark.parametrize("machine", HEADERS)
def test_the_headers_agree(machine: str) -> None:
    known = defined(machine)
    # asm-generic calls it fstatat, and __BITS_PER_LONG makes it newfstatat.
    known.setdefault("newfstatat", known.get("fstatat", 0))
    for name, number in MACHINES[machine].numbers.items():
        assert known[name] == number, name


def test_the_agent_agrees() -> None:
    known = defined(os.uname().machine)
    assert {name: known[name] for name in numbers.NUMBERS} == numbers.NUMBERS


def test_every_call_exists_on_every_machine() -> None:
    for name in MACHINES["x86_64"].numbers:
        for machine in MACHINES.values():
            number_and_arguments(name, (), machine)


@pytest.mark.parametrize(
    ("name", "given", "number", "arguments"),
    [
        ("mkdir", (1, 2), 34, [-100, 1, 2]),
        ("rmdir", (1,), 35, [-100, 1, 0x200]),
        ("chown", (1, 2, 3), 54, [-100, 1, 2, 3, 0]),
        ("openat", (-100, 1, 0, 0), 56, [-100, 1, 0, 0]),
    ],
)
def test_forms_of_newer_machines(
    name: str, given: tuple[int, ...], number: int, arguments: list[int]
) -> None:
    assert number_and_arguments(name, given, MACHINES["aarch64"]) == (number, arguments)
