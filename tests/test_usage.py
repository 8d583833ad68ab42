"""Errors of the command line: one line that names the cause and the likely word."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.session import launch
from tests.conftest import Uevt


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("run --kernal 6.12", "uevt run: unknown option --kernal; did you mean --kernel?"),
        ("run --kernal=6.12", "did you mean --kernel=6.12?"),
        ("run 6.12", "uevt run: unexpected argument '6.12'; did you mean --kernel 6.12?"),
        ("run --kernel model -q x", "uevt run: unexpected argument 'x'; see uevt run --help"),
        ("rum", "did you mean run?"),
        ("6.12", "did you mean run --kernel 6.12?"),
        (
            "kernels biuld",
            "uevt kernels: argument VERB: invalid choice 'biuld', not of list,",
        ),
        ("run --kernel model -k EMPTY", "-k is empty; give a part of a case id"),
    ],
)
def test_mistake_is_named(uevt: Uevt, words: str, message: str) -> None:
    given = ["" if word == "EMPTY" else word for word in words.split()]
    printed = uevt(*given, code=2)
    assert message in printed.err
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1


@pytest.mark.parametrize(("words", "verb"), [([], "matrix"), (["kernels"], "build")])
def test_help_for_a_command_without_its_verb(uevt: Uevt, words: list[str], verb: str) -> None:
    printed = uevt(*words, code=2)
    assert printed.out == ""
    assert printed.err.startswith(f"usage: {' '.join(['uevt', *words])} ")
    assert verb in printed.err


def test_an_installation_without_its_checkout(
    uevt: Uevt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(launch, "ROOT", tmp_path)
    printed = uevt("run", "--kernel", "model", code=2)
    assert f"{tmp_path} has no pyproject.toml: uevt was installed without" in printed.err
    assert "pip install -e CHECKOUT" in printed.err
