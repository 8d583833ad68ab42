"""Read kselftest output like LKFT and LAVA, after Linaro's test-definitions.

Comments before a result are nested TAP without their "#".  Names are joined to those of their
parents and reduced to letters, digits, "-" and "_"; a repeated name gets a suffix.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tap.parser import Parser


def slug(name: str) -> str:
    """A name reduced to what the reader keeps."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", re.sub(r"\[\d{1,5}\]", "", name))
    return re.sub("_-", "__", re.sub("^_|_$", "", plain))


def read_kselftest(text: str, shorten: Callable[[str], str] = slug) -> dict[str, str]:
    """pass, fail or skip by name.  Raises AssertionError for a repeated name."""
    found: dict[str, str] = {}
    for name, result in _results(text, "", shorten):
        assert name not in found, f"{name} comes twice"
        found[name] = result
    return found


def _results(text: str, parent: str, shorten: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    comments: list[str] = []
    for line in Parser().parse_text(text):
        if line.category == "diagnostic":
            comments.append(line.text[1:].strip())
        elif line.category == "test":
            skipped = line.ok and line.skip
            reason = line.directive.text[len("skip") :] if skipped else ""
            name = parent + shorten(
                f"{line.description.removeprefix('selftests:')} {reason}".strip()
            )
            yield from _results("\n".join(comments), f"{name}_", shorten)
            yield name, "skip" if skipped else "pass" if line.ok else "fail"
            comments = []
