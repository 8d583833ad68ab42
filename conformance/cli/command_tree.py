"""Walk the argument parser: completion, manual page and docs/cli.md are generated from it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from msgspec import Struct


class Command(Struct, frozen=True):
    """A command without subcommands: its parser, and its purpose without a final stop."""

    parser: argparse.ArgumentParser
    about: str

    @property
    def name(self) -> str:
        """The words that call it, such as `uevt kernels list`."""
        return self.parser.prog

    @property
    def sentence(self) -> str:
        """Its purpose as a sentence."""
        return f"{self.about[:1].upper()}{self.about[1:]}."

    @property
    def actions(self) -> Sequence[argparse.Action]:
        """Its arguments, without --help, in the order of their declaration."""
        return [a for a in self.parser._actions if not isinstance(a, argparse._HelpAction)]

    @property
    def groups(self) -> Sequence[tuple[str, Sequence[argparse.Action]]]:
        """Its arguments by title of their group; "" for argparse's own groups."""
        own = {self.parser._positionals, self.parser._optionals}
        found = [
            (
                "" if group in own else group.title or "",
                [action for action in self.actions if action in group._group_actions],
            )
            for group in self.parser._action_groups
        ]
        return [(title, actions) for title, actions in found if actions]

    @property
    def usage(self) -> str:
        """Its name with positional and required arguments only."""
        return " ".join([self.name, *filter(None, map(_usage, self.actions))])


def commands_of(parser: argparse.ArgumentParser, about: str = "") -> Iterator[Command]:
    """A command, or its subcommands."""
    groups = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not groups:
        yield Command(parser, parser.description or about)
    for group in groups:
        abouts = {choice.dest: choice.help or about for choice in group._choices_actions}
        for name, command in group.choices.items():
            yield from commands_of(command, abouts.get(name, about))


def names_of(action: argparse.Action) -> list[str]:
    """The spellings of an argument, each with the placeholder of its value."""
    return [_spelled(each, action) for each in action.option_strings] or [value_of(action)]


def value_of(action: argparse.Action) -> str:
    """The placeholder of the value; of a closed set, its members."""
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices is not None:
        return "|".join(map(str, action.choices))
    return action.dest.upper()


def _usage(action: argparse.Action) -> str:
    if action.option_strings:
        return f"{_spelled(action.option_strings[-1], action)}" if action.required else ""
    value = value_of(action)
    return {"*": f"[{value}…]", "+": f"{value}…"}.get(str(action.nargs), value)


def _spelled(option: str, action: argparse.Action) -> str:
    return option if action.nargs == 0 else f"{option} {value_of(action)}"
