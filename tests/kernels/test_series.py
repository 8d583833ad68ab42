"""Patch files of users: which patches, in which order, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kernels.errors import BrokenFile
from kernels.patches import applying, series
from kernels.store.store import Store

FIXTURES = Path(__file__).parents[2] / "fixtures" / "patches"
EVENTS = "kernel/trace/events.c"
HEADER = "include/linux/events.h"


@pytest.fixture
def tree(store: Store) -> Path:
    """The tree that the fixtures change."""
    tree = store.sources / "linux_6.12"
    (tree / EVENTS).parent.mkdir(parents=True)
    (tree / HEADER).parent.mkdir(parents=True)
    (tree / HEADER).write_text("#define EVENTS_FLAGS 1\n#define EINVAL 22\n#define EPERM 1\n")
    (tree / EVENTS).write_text(
        "// SPDX-License-Identifier: GPL-2.0\n#include <linux/events.h>\n\n"
        "/* Written by Jörg, in a comment that is UTF-8. */\n"
        "static int events_open(int flags)\n{\n"
        "\tif (flags & ~EVENTS_FLAGS)\n\t\treturn -EINVAL;\n\n\treturn 0;\n}\n\n"
        "static int events_close(void)\n{\n\treturn 0;\n}\n"
    )
    return tree


def outcome(name: str, tree: Path, store: Store) -> tuple[str, str]:
    """Flags and errno in the tree with a fixture's patches."""
    with applying.applied(series.read(FIXTURES / name).patches, tree, store):
        flags = (tree / HEADER).read_text().split()[2]
        errno = (tree / EVENTS).read_text().partition("return -")[2].partition(";")[0]
    return flags, errno


@pytest.mark.parametrize(
    ("name", "flags", "errno"),
    [
        ("git.diff", "3", "EPERM"),
        ("diff_ru.diff", "3", "EPERM"),
        ("crlf.diff", "3", "EPERM"),
        ("single_mail.patch", "3", "EINVAL"),
        ("out_of_order_with_replies.mbox", "3", "EPERM"),
        ("folded_subject.mbox", "3", "EPERM"),
        ("two_versions.mbox", "3", "EACCES"),
        ("resent.mbox", "3", "EACCES"),
        ("quoted_printable.patch", "1", "EPERM"),
        ("base64.patch", "1", "EPERM"),
        ("attachment.eml", "1", "EPERM"),
        ("crlf.patch", "1", "EPERM"),
        ("format_flowed.patch", "1", "EPERM"),
    ],
)
def test_series_is_applied(name: str, flags: str, errno: str, tree: Path, store: Store) -> None:
    assert outcome(name, tree, store) == (flags, errno)


def test_series_is_sorted_by_number_and_text_around_a_diff_is_ignored() -> None:
    found = series.read(FIXTURES / "out_of_order_with_replies.mbox")
    assert [patch.name for patch in found.patches] == [
        "out_of_order_with_replies.mbox 1/2 (events: Accept a second flag)",
        "out_of_order_with_replies.mbox 2/2 (events: Refuse unknown flags with EPERM)",
    ]
    assert found.notes == ()
    first = found.patches[0]
    assert first.text.startswith("diff --git a/include/linux/events.h b/include/linux/events.h\n")
    assert first.text.endswith(" #define EPERM 1\n")
    assert first.file == FIXTURES / "out_of_order_with_replies.mbox"


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("two_versions.mbox", "two_versions.mbox: v2 is used, v1 ignored"),
        ("resent.mbox", "resent.mbox: 2/2 occurs more than once, the last one is used"),
        ("single_mail.patch", "single_mail.patch: is 1/2 of its series"),
        (
            "format_flowed.patch",
            "format_flowed.patch: 2/2 was sent as format=flowed, which may have changed the "
            "patch's white space",
        ),
    ],
)
def test_choice_among_mails_is_reported(name: str, note: str) -> None:
    assert note in series.read(FIXTURES / name).notes


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("missing_first.mbox", r"lacks \[PATCH 1/2\]"),
        ("two_series.mbox", "several series: of 2, of 3"),
        ("only_replies.mbox", r"none of its 2 mails except replies has a diff"),
        (
            "wrapped_by_mailer.patch",
            r"EPERM': line 16: not in hunk syntax \(wrapped by a mailer\?\)",
        ),
        ("cut_off.diff", "line 14: the text ends within this hunk"),
        ("merge.diff", "line 5: the combined diff of a merge"),
        ("binary.diff", "line 3: a change of a binary file"),
        ("not_a_patch.txt", "is no patch: it has neither a diff nor a mail with one"),
        ("nothing_here.diff", "No such file or directory"),
    ],
)
def test_unusable_files_are_refused_with_a_reason(name: str, why: str) -> None:
    with pytest.raises(BrokenFile, match=f"{name}: .*{why}") as caught:
        series.read(FIXTURES / name)
    assert caught.value.hint


def test_endless_series_is_refused(tmp_path: Path) -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    mails = [
        f"From 0 Mon Sep 17 00:00:00 2001\nSubject: [PATCH {number}/999999999999] x\n\n{diff}\n"
        for number in (1, 2)
    ]
    (tmp_path / "endless.mbox").write_text("".join(mails))
    with pytest.raises(BrokenFile, match="series of 999999999999, more than 10000"):
        series.read(tmp_path / "endless.mbox")


def test_bytes_that_are_not_utf_8_are_kept(tree: Path, store: Store) -> None:
    old = (tree / EVENTS).read_text().encode("latin-1")
    (tree / EVENTS).write_bytes(old)
    with applying.applied(series.read(FIXTURES / "latin1.patch").patches, tree, store):
        assert b"J\xf6rg and J." in (tree / EVENTS).read_bytes()
    assert (tree / EVENTS).read_bytes() == old


def test_compressed_mbox_is_read(tmp_path: Path) -> None:
    whole = FIXTURES / "two_versions.mbox"
    packed = tmp_path / "t.mbox.gz"
    packed.write_bytes(gzip.compress(whole.read_bytes()))
    found = [patch.text for patch in series.read(packed).patches]
    assert found == [patch.text for patch in series.read(whole).patches]
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(BrokenFile):
        series.read(packed)


@pytest.mark.parametrize(
    ("path", "stem"),
    [
        ("a/fix.diff", "fix"),
        ("v2-0001-x.patch", "v2-0001-x"),
        ("t.mbox.gz", "t"),
        ("fix.cocci:kernel/trace,include/linux", "fix"),
        ("6.12-stable.mbox", "6.12-stable"),
        ("notes.txt", "notes.txt"),
    ],
)
def test_name_of_a_patch_file(path: str, stem: str) -> None:
    assert series.stem(Path(path)) == stem


def test_semantic_patch_with_places() -> None:
    (everywhere,) = series.read(FIXTURES / "errno.cocci").patches
    (there,) = series.read(Path(f"{FIXTURES}/errno.cocci:kernel/trace/,fs")).patches
    assert everywhere.semantic
    assert everywhere.places == ()
    assert there.places == ("kernel/trace", "fs")
    assert everywhere.identity != there.identity
    with pytest.raises(BrokenFile, match="no directory of a source tree"):
        series.read(Path(f"{FIXTURES}/errno.cocci:../.."))


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzipped"])
def test_oversized_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    """A small file can expand to gigabytes."""
    monkeypatch.setattr(series, "_LONGEST", 1 << 20)
    content = b"a" * (2 << 20)
    file = tmp_path / "bomb.patch"
    file.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(BrokenFile, match="holds more than 1 MiB"):
        series.read(file)
