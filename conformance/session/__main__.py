"""What `uevt run` starts: pytest, and a last look at whether there was a run at all.

``python -m conformance.session.__main__ WORD…`` is ``python -m pytest WORD…``, but its exit code is
that of our verdict, and what ends well without one is no run that passed.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from conformance.results.exit_codes import Ending, ExitStyle, exit_code

_STYLE = "--exit-style="


def main(argv: Sequence[str]) -> int:
    """Run pytest; the exit code of the run, that of the host's trouble where there was none."""
    # What is imported and collected stays: to look through it again and again takes a tenth of the
    # time to the first result.  The witness lets it begin.
    gc.disable()
    import pytest

    from conformance.session.controller.controller import ExitCodeObserver

    witness = ExitCodeObserver()
    try:
        code = int(pytest.main(list(argv), plugins=[witness]))
        sys.stdout.flush()
    except BrokenPipeError:
        # As pytest does: whoever read our output has gone.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if witness.code is not None:
        return witness.code
    if code == 0:
        sys.stderr.write("uevt: pytest ended well, and nothing was judged\n")
        styles = [word.removeprefix(_STYLE) for word in argv if word.startswith(_STYLE)]
        return exit_code(Ending.HOST, ExitStyle(styles[-1]) if styles else ExitStyle.DEFAULT)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
