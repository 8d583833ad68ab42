"""Run pytest and check that it judged something: the program of `uevt run`.

``python -m conformance.session.__main__ WORD…`` is ``python -m pytest WORD…`` with the exit code of
the verdict.  A session that ends well without a verdict is an error.
"""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import Sequence

from conformance.results.exit_codes import Ending, ExitStyle, exit_code
from conformance.session.options import value_of
from host import interruption
from host.text import complain, discard, escape_unencodable

_WITHOUT_VERDICT = (Ending.USAGE, Ending.HOST, Ending.BUILD_FAILED, Ending.INTERRUPTED)


def main(argv: Sequence[str]) -> int:
    """Run pytest; the exit code of its verdict, or that of Ending.HOST without one."""
    # Imported modules and collected cases live until the end: scanning them takes a tenth of the
    # time to the first result.  ExitCodeObserver enables the collector.
    gc.disable()
    escape_unencodable(sys.stdout)
    import pytest

    from conformance.session.ending import ExitCodeObserver

    witness = ExitCodeObserver()
    style = ExitStyle(value_of("--exit-style", argv) or ExitStyle.DEFAULT)
    try:
        interruption.by_sigterm(forwarded=True)
        code = int(pytest.main(list(argv), plugins=[witness]))
        sys.stdout.flush()
    except KeyboardInterrupt:
        # Outside of what pytest calls a session.
        return exit_code(Ending.INTERRUPTED, style)
    except OSError as error:
        # Of our output: the disk is full, or its reader has gone.
        discard(sys.stdout)
        complain(error)
        return exit_code(Ending.HOST, style)
    except Exception:
        # A bug of ours: Python's own code is that of a FAIL.
        traceback.print_exc()
        return exit_code(Ending.HOST, style)
    if witness.code is not None:
        return witness.code
    if witness.interrupted:
        return exit_code(Ending.INTERRUPTED, style)
    if code == 0:
        complain("pytest ended well, and nothing was judged")
        return exit_code(Ending.HOST, style)
    # A code of pytest's own may mean something else in a style: its 4 is kselftest's skip.
    ours = {exit_code(ending, style) for ending in _WITHOUT_VERDICT}
    return code if code in ours else exit_code(Ending.HOST, style)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
