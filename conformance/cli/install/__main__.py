"""Install the suite to a directory, or pack such a directory to build/uevt-VERSION.tar.xz."""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import version
from pathlib import Path

from conformance.cli.install.kselftest import install, write_tarball
from host.errors import UevtError


def main() -> int:
    """Exit code 3 where the host is at fault, as of `uevt run`."""
    parser = argparse.ArgumentParser(prog="python -m conformance.cli.install", description=__doc__)
    parser.add_argument("--tarball", action="store_true", help="write a tarball to DIR")
    parser.add_argument("directory", type=Path, metavar="DIR")
    given = parser.parse_args()
    directory: Path = given.directory.absolute()
    try:
        if given.tarball:
            made = directory / f"uevt-{version('uevt')}.tar.xz"
            write_tarball(made)
        else:
            made = directory
            install(made)
    except (UevtError, OSError) as error:
        sys.stderr.write(f"uevt: {getattr(error, 'with_hint', error)}\n")
        return 3
    sys.stdout.write(f"{made}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
