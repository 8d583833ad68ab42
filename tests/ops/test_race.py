"""Tallies of races: what a guest reports, as text, and what the model allows."""

from __future__ import annotations

import json

import pytest

from conformance import ops
from conformance.ops import digest, race
from tests.ops.test_operations import RACE


def test_parsing_inverts_formatting() -> None:
    tallies = [[{"EBADF": 2, "8": 1, "10": 4}, {"0": 3}], [{race.OTHERS: 1}]]
    text = race.format_tallies(RACE, tallies)
    assert text == "p1.0: 8 *1, 10 *4, EBADF *2\np1.1: 0 *3\np2.0: others *1\n"
    assert race.parse_tallies(text) == tallies


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("p1.0: 0 *3\np1.1: 0 *3\np2.0: 0 *1\n", True),
        ("p1.0: 0 *1, EBADF *2\np1.1: 0 *3\np2.0: 0 *1\n", True),
        # Another answer, one too few, one track too few, another track.
        ("p1.0: 0 *2, EIO *1\np1.1: 0 *3\np2.0: 0 *1\n", False),
        ("p1.0: 0 *2\np1.1: 0 *3\np2.0: 0 *1\n", False),
        ("p1.0: 0 *3\np1.1: 0 *3\n", False),
        ("p1.0: 0 *3\np1.1: 0 *3\np3.0: 0 *1\n", False),
    ],
)
def test_conformance_of_tallies(text: str, fits: bool) -> None:
    may = race.format_allowed(RACE, [[["EBADF", "0"], ["0"]], [["0"]]])
    assert may == "p1.0: 0|EBADF *3\np1.1: 0 *3\np2.0: 0 *1\n"
    assert race.conforms(may, text) is fits


def test_digest_depends_on_the_steps() -> None:
    other = race.Race("p1", (RACE.tracks[0], race.Track("p2", (ops.Close("p2", 6),))))
    assert digest.digest([RACE]) != digest.digest([other])
    assert json.dumps(RACE.encode()).count('"op"') == 4


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"[[[[2, 8], [1, -9]], [[3, 0]]], [[[1, null]]]]", "p1.0: 8 *2, EBADF *1\n"),
        (b"[[[[3, -4000]], [[3, -5000]]], [[[1, 0]]]]", "p1.0: -4000 *3\n"),
        (b"[[[[3, 0]]], [[[1, 0]]]]", ""),
        (b"[[[[3, 0]], [[3, 0]]]]", ""),
        (b'[[[["x", 0]], [[3, 0]]], [[[1, 0]]]]', ""),
        (b"[[[[3, [0]]], [[3, 0]]], [[[1, 0]]]]", ""),
        (b"[[[7], [[3, 0]]], [[[1, 0]]]]", ""),
        (b"[" * 100_000, ""),
        (b"{", ""),
        (b"\xff", ""),
        (b"", ""),
    ],
)
def test_malformed_tallies_become_empty_text(raw: bytes, text: str) -> None:
    shown = race.decode_tallies(RACE, raw)
    assert shown.splitlines(keepends=True)[:1] == [text] * bool(text)
