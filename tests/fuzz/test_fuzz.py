"""Every parser accepts its input, or raises an error that it documents; round trips."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.patches.diff import Diff
from tests.fuzz.inputs import inputs
from tests.fuzz.target import Target
from tests.fuzz.targets_files import file_targets
from tests.fuzz.targets_guest import guest_targets
from tests.fuzz.targets_report import report_targets
from tests.model.generated import STEADY
from vm import wire

KEPT = sorted((Path(__file__).parents[2] / "fixtures" / "fuzz").glob("*/*"))
# `make fuzz` loads the profile "fuzz" of conftest.py.
FUZZING = settings.get_current_profile_name() == "fuzz"
AMOUNT = settings() if FUZZING else STEADY


def targets(scratch: Path) -> tuple[Target, ...]:
    """All targets; ``scratch`` is a directory for the files that they parse."""
    return (*guest_targets(), *file_targets(scratch), *report_targets(scratch))


NAMES = [target.name for target in targets(Path("nowhere"))]
each_target = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(scope="module")
def by_name(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Target]:
    """All targets by name."""
    return {target.name: target for target in targets(tmp_path_factory.mktemp("fuzz"))}


@each_target
def test_valid_inputs_are_accepted(by_name: Mapping[str, Target], name: str) -> None:
    target = by_name[name]
    accepted = [target.accepts(seed) for seed in target.seeds()]
    assert True in accepted


@each_target
def test_mutated_inputs_raise_documented_errors_only(
    by_name: Mapping[str, Target], name: str
) -> None:
    target = by_name[name]

    @AMOUNT
    @given(inputs(target.seeds(), target.tokens))
    def parse(data: bytes) -> None:
        target.accepts(data)

    parse()


@pytest.mark.parametrize("file", KEPT, ids=lambda file: f"{file.parent.name}-{file.name}")
def test_inputs_that_failed_once_pass(by_name: Mapping[str, Target], file: Path) -> None:
    by_name[file.parent.name].accepts(file.read_bytes())


# Round trips

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, width=32),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
).filter(lambda value: "inf" not in repr(value))


@settings(STEADY, max_examples=25)
@given(st.lists(st.dictionaries(st.text(), VALUES), max_size=4), st.data())
def test_messages_survive_any_stream(
    messages: list[dict[str, object]], data: st.DataObject
) -> None:
    stream = b"".join(map(wire.pack, messages))
    decoder = wire.Decoder()
    found = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        decoder.feed(stream[:size])
        stream = stream[size:]
        while (payload := decoder.take()) is not None:
            found.append(wire.unpack(payload))
    assert found == messages
    assert decoder.pending == 0


LINES = (" same", "-gone", "+new", " ", "- -- a/x", "+++ b/x")
HUNKS = st.lists(st.sampled_from(LINES), min_size=1)


@STEADY
@given(HUNKS, st.text(alphabet="abc -+@\n", max_size=40).filter(lambda words: "@@@" not in words))
def test_a_diff_is_found_in_prose(lines: list[str], words: str) -> None:
    old = sum(line[0] in " -" for line in lines)
    new = sum(line[0] in " +" for line in lines)
    hunk = "".join(f"{line}\n" for line in lines)
    diff = f"--- a/x\n+++ b/x\n@@ -1,{old} +1,{new} @@\n{hunk}"
    assert Diff(f"{words}\n{diff}-- \n2.39\n").text == diff
