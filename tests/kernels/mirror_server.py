"""A mirror on the loopback device that can interrupt transfers, stall, or send wrong data."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from msgspec import Struct, field

LIST = "/v5.x/sha256sums.asc"


class Mirror(Struct):
    """The files, the requests, and the next failures."""

    files: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    # The next answers for a tarball end, or stall, after so many bytes.
    breaks: list[int] = field(default_factory=list)
    silent: threading.Event = field(default_factory=threading.Event)
    stalls: bool = False
    port: int = 0

    @property
    def base(self) -> str:
        """The base address."""
        return f"http://127.0.0.1:{self.port}"

    def add(self, name: str, content: bytes, *, digest: str | None = None) -> None:
        """Add a file to v5.x, with its line in the list."""
        self.files[f"/v5.x/{name}"] = content
        line = f"{digest or hashlib.sha256(content).hexdigest()}  {name}\n"
        self.files[LIST] = self.files.get(LIST, b"") + line.encode()

    @property
    def ranges(self) -> list[str | None]:
        """The requested ranges of tarballs."""
        return [span for path, span in self.requests if path.endswith(".xz")]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, mirror: Mirror, *arguments: Any) -> None:
        self._mirror = mirror
        super().__init__(*arguments)

    def do_GET(self) -> None:
        """Send a file, or the rest of it."""
        mirror = self._mirror
        mirror.requests.append((self.path, self.headers.get("Range")))
        content = mirror.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        tag = f'"{hashlib.sha256(content).hexdigest()[:8]}"'
        begin = 0
        if (span := self.headers.get("Range")) and self.headers.get("If-Range") == tag:
            begin = int(span.removeprefix("bytes=").rstrip("-"))
        if begin > len(content):
            self.send_error(416)
            return
        self.send_response(206 if begin else 200)
        self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(content) - begin))
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        if mirror.breaks and self.path.endswith(".xz"):
            self.wfile.write(content[begin : mirror.breaks.pop(0)])
            self.wfile.flush()
            if mirror.stalls:
                mirror.silent.wait(20)
            self.close_connection = True
            return
        self.wfile.write(content[begin:])

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def serving() -> Iterator[Mirror]:
    """Run a mirror."""
    mirror = Mirror()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, mirror))
    server.daemon_threads = True
    mirror.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield mirror
    finally:
        mirror.silent.set()
        server.shutdown()
        server.server_close()
        thread.join()
