"""The workers of a matrix: on this machine, or those of a scheduler."""

from __future__ import annotations

import ipaddress
import logging
import multiprocessing
import os
import socket
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from conformance.cli.matrix.resources import offered
from host.files import open_regular
from host.temporary_directories import scratch
from host.text import one_line
from kernels.errors import HostTrouble, UserMistake

if TYPE_CHECKING:
    from distributed import Client

_TLS = ("tls_ca", "tls_cert", "tls_key")
# dask knows others, which need packages or are not encrypted.
_SCHEMES = ("tcp", "tls")
# A task that was running when so many workers died is not tried again, but halved.
_DEATHS = 2
# A worker without a heartbeat for so long is given up, and its task runs elsewhere.
SILENT_S = 30
_CONNECT_S = 30
# How often a cluster is started whose workers die at once.
_STARTS = 3
# Seconds for a cluster without processes to close.
_CLOSE_S = 10


def declare_security(parser: Any) -> None:
    """Declare the options of an encrypted connection."""
    parser.add_argument("--tls-ca", metavar="FILE", help="certificate authority of the scheduler")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate of this end")
    parser.add_argument("--tls-key", metavar="FILE", help="key of the certificate")


def settings(directory: Path) -> dict[str, Any]:
    """Settings of dask for schedulers and workers of ours, with a directory for its files."""
    return {
        "temporary-directory": str(directory),
        "distributed.scheduler.allowed-failures": _DEATHS - 1,
        "distributed.scheduler.worker-ttl": f"{SILENT_S}s",
        "distributed.worker.daemon": True,
        # Their pages are not encrypted.
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
    }


def require_distributed() -> None:
    """Import dask.distributed, and keep it from logging, in this process and its workers.

    Raises UserMistake without it.
    """
    os.environ["DASK_LOGGING__DISTRIBUTED"] = "critical"
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        hint = "install it: .venv/bin/pip install -e '.[scale]'"
        raise UserMistake("uevt matrix needs dask.distributed", hint) from error
    # The import sets levels, one for distributed.client among them.
    for name in ("distributed", "distributed.client", "asyncio", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def security_of(address: str, options: Namespace) -> Any:
    """The security of a connection; None on the own machine without certificates.

    Raises UserMistake for what is no address, an address off the machine without TLS, and files
    that cannot be used.
    """
    _host_and_port(address)
    given = {name: getattr(options, name) for name in _TLS if getattr(options, name) is not None}
    if given and len(given) < len(_TLS):
        raise UserMistake("TLS needs three files", "give --tls-ca, --tls-cert and --tls-key")
    if address.startswith("tls://") and not given:
        raise UserMistake(f"{address} needs TLS", "give --tls-ca, --tls-cert and --tls-key")
    if given:
        if not address.startswith("tls://"):
            raise UserMistake(f"{address} is not encrypted", "write tls://HOST:PORT")
        return _encrypted(given)
    if not is_loopback(address):
        what = f"{address} is another machine: a worker runs what it is sent"
        raise UserMistake(what, "use TLS: tls://HOST:PORT with --tls-ca, --tls-cert, --tls-key")
    return None


def _encrypted(files: Mapping[str, str]) -> Any:
    """Security with these files.  Raises UserMistake for those that cannot be used."""
    from distributed import Security

    for name, file in files.items():
        try:
            open_regular(Path(file)).close()
        except OSError as error:
            what = f"--{name.replace('_', '-')} {file}: {error.strerror}"
            raise UserMistake(what, "name a file that you can read") from error
    ends = ("tls_client_", "tls_worker_")
    own = {f"{end}{name}": files[f"tls_{name}"] for name in ("cert", "key") for end in ends}
    found = Security(tls_ca_file=files["tls_ca"], require_encryption=True, **own)
    try:
        found.get_connection_args("client")
    except OSError as error:
        what = f"the files of TLS cannot be used: {one_line(str(error))}"
        raise UserMistake(what, "name PEM files, with a key that fits the certificate") from error
    return found


def start_hint(address: str) -> str:
    """How to start the scheduler of an address, with TLS where that is asked for."""
    tls = " --protocol tls --tls-ca-file FILE --tls-cert FILE --tls-key FILE"
    return f"start it: dask scheduler{tls if address.startswith('tls://') else ' --host 127.0.0.1'}"


def is_loopback(address: str) -> bool:
    """Whether an address is of this machine only.  Raises UserMistake if it is none."""
    host, port = _host_and_port(address)
    try:
        found = {each[4][0] for each in socket.getaddrinfo(host, port)}
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UserMistake(f"{address}: {why}", "name the scheduler") from error
    return all(ipaddress.ip_address(each).is_loopback for each in found)


def _host_and_port(address: str) -> tuple[str, int]:
    """The parts of the address of a scheduler.  Raises UserMistake if it is none."""
    scheme, separator, _ = address.partition("://")
    parts = urlsplit(address if separator else f"tcp://{address}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or port is None or (separator and scheme not in _SCHEMES):
        hint = "write tls://HOST:PORT, or tcp://127.0.0.1:8786"
        raise UserMistake(f"{address!r} is no address of a scheduler", hint)
    return host, port


@contextmanager
def connected(options: Namespace, workers: int, guest_mib: int = 0) -> Iterator[Client]:
    """A client of the scheduler of ``options``, or of a cluster of so many workers here.

    Each of those has the memory for one guest.  Raises UserMistake, HostTrouble.
    """
    import dask
    from distributed import Client

    if options.scheduler is not None:
        security = security_of(options.scheduler, options)
        try:
            client = Client(options.scheduler, security=security, timeout=_CONNECT_S)
        except OSError as error:
            what = f"no scheduler at {options.scheduler}: {error}"
            raise HostTrouble(what, start_hint(options.scheduler)) from error
        with client:
            yield client
        return
    with scratch() as directory, dask.config.set(settings(directory)):
        cluster = _started(workers, directory, guest_mib)
        try:
            with Client(cluster) as client:
                yield client
        finally:
            _end(cluster)


def _started(workers: int, directory: Path, guest_mib: int) -> Any:
    """A cluster on this machine.  Raises HostTrouble."""
    from distributed import LocalCluster

    why, offer = "", offered(1, share=workers, least_mib=guest_mib)
    for _ in range(_STARTS):
        try:
            return LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
                resources=offer,
                # Other users of this machine can reach its ports: encrypted, with a key of this
                # run.
                security=True,
                memory_limit=None,
                silence_logs=logging.CRITICAL,
                death_timeout=_CONNECT_S,
                # What workers leave when they are killed is removed with the directory.
                env={"TMPDIR": str(directory)},
            )
        except (RuntimeError, TimeoutError) as error:
            # A worker died, or did not start in time.
            why = str(error)
            for child in multiprocessing.active_children():
                child.kill()
    raise HostTrouble(f"workers do not start: {why}", "see uevt doctor, or give fewer --workers")


def _end(cluster: Any) -> None:
    """End a cluster, also workers that are stopped or starting."""
    for nanny in cluster.workers.values():
        nanny.auto_restart = False
    for child in multiprocessing.active_children():
        child.kill()
    # All results are stored.  Nanny.kill() asserts that its worker is not just starting.
    with suppress(TimeoutError, AssertionError):
        cluster.close(timeout=_CLOSE_S)
    # One that was just started again.
    for child in multiprocessing.active_children():
        child.kill()
        child.join(_CLOSE_S)
