"""The live page of running simulations. It is the allocator's page, read-only, and served to this machine only."""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import parse_qs, urlsplit

from subak import _subak

PATIENCE_S = 5.0
"""Time limit for a request, s."""
SAFE = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'self'; img-src data:"}


class Page:
    """Serves the page inside its ``with`` block; prints the page's address on standard error."""

    def __init__(self) -> None:
        self.watched = _subak.Watched()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self.watched))
        self._server.daemon_threads = True

    @property
    def address(self) -> str:
        """Address (URL) of the page."""
        return f"http://127.0.0.1:{self._server.server_port}/"

    def __enter__(self) -> Page:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        said = f"The run is shown at {self.address}" if sys.stderr.isatty() else json.dumps({"page": self.address})
        print(said, file=sys.stderr, flush=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(watched: _subak.Watched) -> type[BaseHTTPRequestHandler]:
    files = {path: (kind, text.encode()) for path, kind, text in _subak.page_files()}

    class Handler(BaseHTTPRequestHandler):
        timeout = PATIENCE_S

        def do_GET(self) -> None:
            """Serves one of the page's files, or its data."""
            # Protects against DNS rebinding: a foreign page could reach this server under its own host name.
            if (self.headers.get("Host") or "").partition(":")[0] not in ("127.0.0.1", "localhost"):
                return self._say(403, "text/plain", b"ask for localhost\n")
            asked = urlsplit(self.path)
            if asked.path == "/state.json":
                state = watched.state(parse_qs(asked.query).get("network") == ["1"])
                return self._say(200, "application/json", state.encode())
            if asked.path not in files:
                return self._say(404, "text/plain", b"there is / and /state.json\n")
            return self._say(200, *files[asked.path])

        def _say(self, code: int, kind: str, body: bytes) -> None:
            self.send_response(code)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **SAFE}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Suppresses log messages."""

    return Handler
