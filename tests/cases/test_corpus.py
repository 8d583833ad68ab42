"""The corpus of definitions: parsing, and messages about an invalid one."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.cases.support.definition_corpus import CorpusError, load_definitions

# The case registers one event for each bit of an enable word.
LARGEST_GROUP = 64


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return tmp_path / "definitions.toml"


def test_name_replaces_the_placeholder(corpus: Path) -> None:
    corpus.write_text('[accepted.scalars]\nu32 = ["NAME  u32 a", "u:NAME u32 a"]\n')
    definition = load_definitions("accepted", corpus)["scalars"]["u32"]
    assert definition.text("e") == "e  u32 a"
    assert definition.line("e") == "u:e u32 a\n"


@pytest.mark.parametrize("section", ["accepted", "refused"])
def test_groups_fit_into_one_program(section: str) -> None:
    groups = load_definitions(section)
    assert groups
    assert all(0 < len(group) <= LARGEST_GROUP for group in groups.values())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[accepted", "definitions.toml: is not TOML"),
        ("[refused.types]\n", "accepted: is missing\nhint: sections are accepted and refused"),
        ("[accepted]\n[strange]\n", "strange: is not known\nhint: remove it"),
        ("[accepted.s]\na = ['NAME a']\n", "accepted.s.a: is .*\nhint: write"),
        ("[accepted.s]\na = ['name a', 'b']\n", "accepted.s.a: is .*\nhint: write"),
        ("[accepted]\ns = 1\n", "accepted.s: is 1\nhint: write a table"),
    ],
)
def test_message_about_an_invalid_corpus(corpus: Path, text: str, complaint: str) -> None:
    corpus.write_text(text)
    with pytest.raises(CorpusError, match=complaint) as raised:
        load_definitions("accepted", corpus)
    assert str(corpus) in str(raised.value)


def test_missing_corpus_is_named(corpus: Path) -> None:
    with pytest.raises(CorpusError, match="No such file"):
        load_definitions("accepted", corpus)
