"""`uevt worker`: judge what a scheduler sends."""

from __future__ import annotations

import argparse
import asyncio
import platform
import sys

from conformance.cli.matrix.cluster import (
    declare_security,
    is_loopback,
    require_distributed,
    security_of,
    settings,
    start_hint,
)
from conformance.cli.matrix.resources import offered
from conformance.results.exit_codes import Ending, exit_code
from conformance.session.launch import guests_that_fit
from host.temporary_directories import scratch
from kernels.errors import HostTrouble, UserMistake

_CONNECT_S = 30


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add("address", metavar="ADDRESS", help="of the scheduler: tls://HOST:PORT")
    about = "guests at a time (default: as cores and memory allow)"
    add("--vms", type=int, metavar="N", help=about)
    add("--name", metavar="NAME", help="name in reports (default: that of the machine)")
    declare_security(parser)
    parser.set_defaults(perform=_perform)


def _perform(arguments: argparse.Namespace) -> int:
    """Run a worker; 0 when the scheduler has ended.  Raises UserMistake, HostTrouble."""
    require_distributed()
    if arguments.vms is None:
        arguments.vms = guests_that_fit(None)
    if arguments.vms < 1:
        raise UserMistake("--vms needs a number", "give 1 or more")
    security = security_of(arguments.address, arguments)
    asyncio.run(_serve(arguments, security))
    return exit_code(Ending.PASS)


async def _serve(arguments: argparse.Namespace, security: object) -> None:
    import dask
    from distributed import Nanny

    with scratch() as directory, dask.config.set(settings(directory)):
        try:
            # The nanny replaces a worker that dies.
            async with Nanny(
                arguments.address,
                nthreads=arguments.vms,
                name=arguments.name or platform.node(),
                resources=offered(arguments.vms),
                security=security,
                memory_limit=None,
                # What it leaves when it is killed is removed with the directory.
                env={"TMPDIR": str(directory)},
                dashboard=False,
                # Without a host it listens on every interface.
                host="127.0.0.1" if is_loopback(arguments.address) else None,
                death_timeout=_CONNECT_S,
            ) as nanny:
                sys.stderr.write(f"uevt: worker {nanny.name} of {arguments.address}\n")
                await nanny.finished()
        except (TimeoutError, OSError) as error:
            what = f"no scheduler at {arguments.address}"
            raise HostTrouble(what, start_hint(arguments.address)) from error
