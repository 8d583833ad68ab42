"""What a case leaves changed is told, and which file it is."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pytest

from conformance.surroundings import Surroundings
from conformance.sut import tracefs
from conformance.sut.calls import Call
from tests.conformance.test_runner import Guest


class Kept(Guest):
    """A guest whose data file has a mode and an owner."""

    attributes = (0o100640, 0, 0)

    def call(
        self, actor: str, calls: Sequence[Call], watch: Sequence[tuple[str, int, int]] = ()
    ) -> list[dict[str, Any]]:
        results = super().call(actor, calls, watch)
        data = tracefs.DATA.encode().hex() + "00"
        for place, call in enumerate(calls):
            if call[0] == "peek" and {"in": data} in list(calls[place - 1][2]):  # type: ignore[call-overload]
                status = bytes(24) + struct.pack("<III", *self.attributes) + bytes(108)
                results[place]["data"] = status.hex()
        return results


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        pytest.param((0o100640, 0, 0), [], id="as-it-was"),
        pytest.param(
            (0o100666, 0, 0),
            [f"the mode of {tracefs.DATA} was '100640 0:0' and is '100666 0:0'"],
            id="mode",
        ),
        pytest.param(
            (0o100640, 7, 8),
            [f"the mode of {tracefs.DATA} was '100640 0:0' and is '100640 7:8'"],
            id="owner",
        ),
    ],
)
def test_a_mode_that_was_left_is_told(attributes: tuple[int, int, int], told: list[str]) -> None:
    guest = Kept({})
    around = Surroundings(guest)
    guest.attributes = attributes
    assert around.changed() == told
