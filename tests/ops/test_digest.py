"""Digests of programs."""

from __future__ import annotations

import os

from hypothesis import given

from conformance import ops
from conformance.ops import Operation, View, digest, race
from tests.model.generated import STEADY, programs


@STEADY
@given(programs(hostility=4), programs(hostility=4))
def test_digests_differ_when_programs_do(first: list[Operation], second: list[Operation]) -> None:
    assert (digest.digest(first) == digest.digest(second)) == (first == second)


def test_digest_ignores_serials_of_names() -> None:
    def program(serial: str, stem: str) -> list[Operation]:
        name = f"t{serial}_{stem}"
        return [
            ops.Store("p1", 0x1000, b"\x1c\0\0\0" + name.encode() + b" u32 a\0\xff"),
            ops.WriteFile("root", f"/events/user_events/{name}/enable", b"1", os.O_WRONLY),
            ops.ReadFile("root", "/status", View.OWN, f"t{serial}_"),
        ]

    assert digest.digest(program("00001", "e")) == digest.digest(program("00731", "e"))
    assert digest.digest(program("00001", "e")) != digest.digest(program("00001", "f"))


def files_of(*names: str) -> list[Operation]:
    """A program that reads a file of each event."""
    return [ops.ReadFile("root", f"/events/user_events_multi/{name}/enable") for name in names]


def test_digest_ignores_earlier_programs() -> None:
    first = digest.digest(files_of("t00001_e.0", "t00001_e.1", "t00001_e.0", "T00001_F"))
    assert first == digest.digest(files_of("t00207_e.1f", "t00207_e.20", "t00207_e.1f", "T00207_F"))
    assert first != digest.digest(files_of("t00001_e.0", "t00001_e.1", "t00001_e.1", "T00001_F"))
    assert first != digest.digest(files_of("t00001_e", "t00001_e.1", "t00001_e.0", "T00001_F"))


def test_digest_of_a_race_ignores_earlier_programs() -> None:
    first, later = (
        race.Race("p1", (race.Track("p1", (ops.Open("p1", 4, f"/events/{name}/enable", 1),)),))
        for name in ("t00001_e", "t00207_e")
    )
    assert digest.digest([first]) == digest.digest([later])


def test_course_of_an_early_end_is_a_prefix() -> None:
    program = files_of("t00001_e", "t00001_f", "t00001_g")
    whole, early = digest.digest_and_course(program)[1], digest.digest_and_course(program[:2])[1]
    assert (len(whole), whole[:4]) == (6, early)
    # Serials of names do not count; the courses differ from the first differing operation on.
    again = files_of("t00099_e", "t00099_x", "t00099_g")
    assert digest.digest_and_course(again)[1][:2] == whole[:2]
    assert digest.digest_and_course(again)[1][2:] != whole[2:]
    storm = files_of(*["t00001_e"] * (digest.COURSE_OPERATIONS + 50))
    assert len(digest.digest_and_course(storm)[1]) == 2 * digest.COURSE_OPERATIONS
