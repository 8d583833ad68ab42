"""Programs of the host, and what is said of one that fails."""

from __future__ import annotations

import pytest

from host.programs import ProgramFailed, output_of


def test_the_output_is_that_of_the_program() -> None:
    assert output_of(["sh", "-c", "cat; echo $A; pwd"], 60, env={"A": "b"}, cwd="/") == "b\n/\n"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo more; echo why >&2; exit 1", "^why$"),
        ("echo why; exit 1", "^why$"),
        ("exit 3", "exit status 3"),
        ("exec sleep 60", "timed out after"),
    ],
)
def test_a_failure_says_what_was_printed_or_why(script: str, said: str) -> None:
    with pytest.raises(ProgramFailed, match=said):
        output_of(["sh", "-c", script], 2)
    with pytest.raises(ProgramFailed, match="No such file"):
        output_of(["/no/such/program"], 2)
