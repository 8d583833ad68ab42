"""The text of a `format` file."""


def fields_of(text: str) -> list[str]:
    """The lines of the event's own fields, with single spaces for tabs."""
    own = text.partition("\n\n")[2].splitlines()
    return [line.strip().replace("\t", " ") for line in own if line.startswith("\tfield:")]


def print_fmt_of(text: str) -> str:
    """The text after ``print fmt: ``."""
    return text.rstrip("\n").rpartition("print fmt: ")[2]
