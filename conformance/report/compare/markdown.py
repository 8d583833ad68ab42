"""A comparison in Markdown, for a code review."""

from __future__ import annotations

from conformance.report.compare.compare import Comparison
from conformance.report.compare.differences import differences
from conformance.report.compare.sections import Item, Section, head, remarks, sections, sentence
from conformance.report.compare.text import evidence_lines
from conformance.report.markdown import escaped, fenced


def render_markdown(comparison: Comparison) -> str:
    """The page, with the conclusion as heading."""
    names, word, numbers = sentence(comparison)
    lines = [f"## {escaped(names)}: {word}", "", f"{escaped(numbers.lstrip(': '))}", ""]
    sides = (("base", comparison.base), ("new", comparison.new))
    for (title, record), runs in zip(sides, comparison.runs, strict=True):
        lines.append(f"- {escaped(head(title, record, runs))}")
    lines += [f"- {escaped(each)}" for each in differences(comparison)]
    lines += [f"- **{escaped(each)}**" for each in remarks(comparison)]
    for section in sections(comparison):
        lines += ["", *_section(section)]
    return "\n".join(lines) + "\n"


def _section(section: Section) -> list[str]:
    lines = [f"### {escaped(section.title)}", ""]
    for item in section.items:
        lines += _item(item)
    lines += [f"- {_code(each)}" for each in section.ids]
    return lines + [f"- {escaped(note)}" for note in section.notes]


def _item(item: Item) -> list[str]:
    lines = [f"- {_code(item.id)} {escaped(item.text)}"]
    if item.evidence:
        lines += ["", *(f"  {line}" for line in fenced(evidence_lines(item.evidence))), ""]
    if item.alike:
        lines.append(f"  also {', '.join(map(_code, item.alike))}")
    if item.passing:
        lines.append(f"  but not {', '.join(map(_code, item.passing))}")
    return lines


def _code(name: str) -> str:
    """A case id, and what follows it, as Markdown."""
    id, space, more = name.partition(" ")
    return f"`{id}`{space}{escaped(more)}" if "." in id else escaped(name)
