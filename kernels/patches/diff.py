"""Find unified diffs in a text, such as a mail."""

from __future__ import annotations

import re

_HUNK = re.compile(r"@@ -\d+(?:,(\d{1,9}))? \+\d+(?:,(\d{1,9}))? @@")
_NAMES = re.compile(r"diff --git (\S+) (\S+)")
_NAME = re.compile(r"(?:---|\+\+\+) (\S+).*")
# git's lines between `diff --git` and the first hunk.
_EXTENDED = re.compile(
    r"(?:old mode|new mode|deleted file mode|new file mode|copy from|copy to|rename from"
    r"|rename to|similarity index|dissimilarity index|index) .*"
)
_RENAMED = re.compile(r"(?:copy|rename) (?:from|to) (\S+)")
# Modes of symbolic links and submodules.
_NO_FILE = re.compile(r"(?:(?:old|new|deleted file|new file) mode|index \S+) 1[26]0000")
_BINARY = re.compile(r"GIT binary patch|Binary files .* differ")


class Damaged(ValueError):
    """A diff that cannot be applied; str() names the line."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}")


class Diff:
    """The diffs of a text, and the files that their headers name.  Raises Damaged.

    The first line of a hunk determines its length, so neither a mail's signature ("-- ") nor a
    removed line that resembles a header is mistaken.  A diff that was sent with CRLF loses each CR.
    """

    def __init__(self, text: str) -> None:
        self._lines = text.removesuffix("\n").split("\n")
        headers = [line for line in self._lines if line.startswith(("+++ ", "@@ -"))]
        if headers and all(line.endswith("\r") for line in headers):
            self._lines = [line.removesuffix("\r") for line in self._lines]
        self._at = 0
        self._found: list[str] = []
        self._names: dict[str, None] = {}
        self._read()

    @property
    def text(self) -> str:
        """The diffs alone; "" if the text has none."""
        return "".join(f"{line}\n" for line in self._found)

    @property
    def names(self) -> tuple[str, ...]:
        """The files as their headers name them ("a/kernel/fork.c", "/dev/null"), each once."""
        return tuple(self._names)

    def _read(self) -> None:
        in_file = False
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if self._begins_file(line):
                in_file = True
                self._take_header(_NAME.fullmatch(line))
                self._take_header(_NAME.fullmatch(self._lines[self._at]))
            elif match := _NAMES.fullmatch(line):
                in_file = False
                self._take_header(match)
                self._extended()
            elif match := _HUNK.match(line):
                if not in_file and not self._found:
                    self._at += 1  # in the text before the first diff
                    continue
                if not in_file:
                    raise Damaged(self._at + 1, "a hunk that belongs to no file")
                self._take()
                self._hunk(*(1 if count is None else int(count) for count in match.groups()))
            elif line.startswith("@@@ "):
                raise Damaged(self._at + 1, "the combined diff of a merge cannot be applied")
            else:
                self._at += 1

    def _begins_file(self, line: str) -> bool:
        after = self._lines[self._at + 1 : self._at + 3]
        return (
            line.startswith("--- ")
            and len(after) == 2
            and after[0].startswith("+++ ")
            and _HUNK.match(after[1]) is not None
        )

    def _extended(self) -> None:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if _BINARY.fullmatch(line):
                raise Damaged(self._at + 1, "a change of a binary file cannot be applied")
            if _NO_FILE.fullmatch(line):
                what = "a change of a symbolic link or of a submodule cannot be applied"
                raise Damaged(self._at + 1, what)
            if not _EXTENDED.fullmatch(line):
                return
            if renamed := _RENAMED.fullmatch(line):
                # Add the first component that names in other headers have.
                self._names[renamed[1] if renamed[1][0] == "/" else f"a/{renamed[1]}"] = None
            self._take()

    def _hunk(self, old: int, new: int) -> None:
        start = self._at
        while old > 0 or new > 0:
            if self._at == len(self._lines):
                raise Damaged(start, "the text ends within this hunk")
            line = self._lines[self._at]
            # Some mailers strip the space of an empty context line.
            if line[:1] in ("", " "):
                old, new = old - 1, new - 1
            elif line[0] == "-":
                old -= 1
            elif line[0] == "+":
                new -= 1
            elif line[0] != "\\":
                raise Damaged(self._at + 1, f"not in hunk syntax (wrapped by a mailer?): {line!r}")
            self._take()
        if old < 0 or new < 0:
            raise Damaged(start, "this hunk has other lines than its header")
        if self._at < len(self._lines) and self._lines[self._at].startswith("\\ "):
            self._take()

    def _take_header(self, match: re.Match[str] | None) -> None:
        if match is not None:
            self._names |= dict.fromkeys(match.groups())
        self._take()

    def _take(self) -> None:
        self._found.append(self._lines[self._at])
        self._at += 1
