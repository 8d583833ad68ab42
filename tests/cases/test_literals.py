"""The rule that a case compares an answer with a literal: what counts as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import literals

ROOT = Path(__file__).resolve().parents[2]

HEAD = """
from conformance.abi.uapi import USER_REG, dyn_loc as loc
from conformance.model import definition
TABLE = {"a": 1}
SIZE = USER_REG.size
def enlarged(number):
    return SIZE + number
@variants({})
def test(ue, left, right):
"""


@pytest.mark.parametrize(
    "body",
    [
        "assert ue.word().value == 1",
        "assert 1 == ue.word().value",
        "assert ue.read() == f'u:{ue.name()} u32 a\\n'",
        "assert ue.word().value == left",
        "assert ue.word().value == TABLE['a']",
        "assert ue.word().value == TABLE[ue.profile.generation]",
        "assert ue.word().value == (right if left else 0)",
        "assert ue.word().errno == ue.dated('x', since='EBADF', before='')",
        "assert ue.read() == [f'{ue.name()}: a={each}' for each in left]",
        "assert ue.read() == [ue.line('a=1', *left)]",
        "assert ue.read() == ue.status_line(1, ue.name(), 'ftrace')",
        "assert ue.ioctl(USER_REG.size).errno == 'EINVAL'",
        "expected = 2 + 2\n    assert ue.word().value == expected",
        "raw = USER_REG.pack({})\n    assert ue.write(raw).value == 8",
        "assert ue.read().startswith('name: ')",
        "for text in ('a', 'b'):\n        assert ue.read() == text",
        "seen = []\n    seen.append(ue.read())\n    assert seen == ['a']",
        "def read():\n        return ue.read()\n    assert read() == 'a'",
    ],
)
def test_literal_is_recognised(body: str) -> None:
    found = examined(body)
    assert found.compared
    assert found.computed == ()


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        "assert ue.word().value",
        "assert not ue.word().errno",
        "assert ue.word().value == ue.word().value",
        "assert left == right",
        "before = ue.read()\n    assert ue.read() == before",
        "assert ue.write(b'a').value == len(ue.read())",
        "assert 1 == 1",
        "seen = []\n    seen.append(ue.read())\n    assert seen == ue.read()",
    ],
)
def test_other_comparisons_do_not_count(body: str) -> None:
    assert examined(body).compared == 0


@pytest.mark.parametrize(
    "body",
    [
        "assert ue.word().value == USER_REG.size",
        "assert ue.word().value == SIZE",
        "assert ue.word().value == loc(16, 4)",
        "assert ue.word().value == enlarged(1)",
        "assert ue.word().value == int(USER_REG.size)",
        "assert ue.read() == definition.print_format(())",
        "expected = USER_REG.size + 4\n    assert ue.word().value == expected",
        "expected = [loc(n, 1) for n in left]\n    assert ue.read() == expected",
    ],
)
def test_expectation_computed_from_abi_or_model_is_found(body: str) -> None:
    found = examined(body)
    assert found.compared == 0
    assert len(found.computed) == 1


def examined(body: str) -> literals.Findings:
    """Examine a case with this body."""
    module = literals.parse(f"{HEAD}    {body}\n", ROOT)
    return literals.examine(module.cases[0], module)
