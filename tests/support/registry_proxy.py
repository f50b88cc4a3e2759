"""A guard before a real schema registry: TLS, client certificates, credentials, and troubles on request.

It is a proxy, because the registry at hand has no such doors itself; what it lets through, the registry answers.
"""

from __future__ import annotations

import contextlib
import http.client
import http.server
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from wherry.coordinator.dev.ports import LOOPBACK, free_ports

FORWARD_TIMEOUT_S = 60.0
_HOP = {"connection", "transfer-encoding", "host", "content-length", "keep-alive"}


@dataclass
class Door:
    """What the proxy does, changed by a test while it runs.

    Attributes:
        port: Where it listens.
        authorization: The one value of that header that is let in; empty lets everybody in.
        troubles: Statuses to answer with instead of forwarding, one for each request; 0 forwards.
        delay_s: How long every answer is held back.
        seen: Paths that were asked for.
        lost: Ids of schemas that the registry seems not to have.
    """

    port: int = 0
    authorization: str = ""
    troubles: list[int] = field(default_factory=list)
    delay_s: float = 0.0
    seen: list[str] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)

    def url(self, *, tls: bool, path: str = "/apis/ccompat/v7") -> str:
        return f"{'https' if tls else 'http'}://{LOOPBACK}:{self.port}{path}"


@contextlib.contextmanager
def guarded(registry_url: str, context: ssl.SSLContext | None = None, door: Door | None = None) -> Iterator[Door]:
    """Serve before a registry.

    Args:
        registry_url: The registry's address.
        context: What to serve TLS with; None serves without.
        door: One of before, to open it again on its port.
    """
    made = door or Door()
    target = urlsplit(registry_url)

    class Handler(http.server.BaseHTTPRequestHandler):
        # One request for each connection: a closed door is closed for who was in before, too.
        protocol_version = "HTTP/1.0"

        def do_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            made.seen.append(self.path)
            time.sleep(made.delay_s)
            if made.authorization and self.headers.get("Authorization") != made.authorization:
                self.answer(401, b'{"error_code":40101,"message":"Unauthorized"}')
                return
            trouble = made.troubles.pop(0) if made.troubles else 0
            if trouble:
                self.answer(trouble, b'{"error_code":%d,"message":"in trouble"}' % (trouble * 100))
                return
            if urlsplit(self.path).path.endswith(tuple(f"/schemas/ids/{number}" for number in made.lost)):
                self.answer(404, b'{"error_code":40403,"message":"Schema not found"}')
                return
            connection = http.client.HTTPConnection(target.netloc, timeout=FORWARD_TIMEOUT_S)
            try:
                headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
                connection.request(self.command, self.path, body, headers)
                response = connection.getresponse()
                self.answer(response.status, response.read(), response.getheader("Content-Type") or "")
            finally:
                connection.close()

        def answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = do_any

        def log_message(self, *args: object) -> None:
            return

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *args: object) -> None:
            return  # whom TLS has refused

    server = Server((LOOPBACK, made.port or free_ports(1)[0]), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    made.port = int(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)
