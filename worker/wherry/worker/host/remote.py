"""Remote sidecars: reached by mutual TLS through a relay, so that everybody else sees a Unix socket.

The relay listens at a socket in the host's own folder and copies bytes between it and the remote end. Workers need no
certificates then, and the peer is checked in one place. Plain TCP is used only where the manifest says `insecure`.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Final

from wherry.contract.errors import AuthError, ConfigError, TransientError
from wherry.contract.manifest import Manifest
from wherry.worker.host import rundir

START_TIMEOUT_S: Final = 10.0
CONNECT_TIMEOUT_S: Final = 10.0
COPY_BYTES: Final = 256 * 1024
CONNECTIONS_MAX: Final = 1024


class Relay:
    """Copies between a Unix socket and a remote sidecar, in a thread of its own."""

    def __init__(self, manifest: Manifest, path: Path) -> None:
        """Listen at the socket, after one connection to the remote end has shown that it can be reached.

        Raises:
            TransientError: The remote end can't be reached.
            AuthError: It, or we, could not prove who we are.
            ConfigError: A TLS file is damaged.
        """
        assert manifest.remote is not None
        self._host, _, port = manifest.remote.rpartition(":")
        self._port = int(port)
        self.path = path
        self._context = _tls_context(manifest)
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(started,), name="sidecar-relay", daemon=True)
        self._thread.start()
        try:
            started.result(START_TIMEOUT_S + CONNECT_TIMEOUT_S)
        except ssl.SSLError as error:
            self.close()
            raise AuthError(
                f"the remote sidecar at {manifest.remote} and we do not trust each other: {error}"
            ) from None
        except (OSError, TimeoutError) as error:
            self.close()
            told = str(error) or "it did not answer in time"
            raise TransientError(f"the remote sidecar at {manifest.remote} cannot be reached: {told}") from None

    def close(self) -> None:
        """End all connections and remove the socket."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_TIMEOUT_S)
        self.path.unlink(missing_ok=True)

    def _run(self, started: Future[None]) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._begin())
        except BaseException as error:
            started.set_exception(error)
            return
        started.set_result(None)
        self._loop.run_forever()
        for task in self._tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
        self._loop.close()

    async def _begin(self) -> None:
        _, writer = await self._connect()
        writer.close()
        await asyncio.start_unix_server(self._serve, str(self.path), limit=COPY_BYTES)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        opening = asyncio.open_connection(
            self._host, self._port, ssl=self._context, server_hostname=self._host, limit=COPY_BYTES
        )
        return await asyncio.wait_for(opening, CONNECT_TIMEOUT_S)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._tasks) >= CONNECTIONS_MAX:
            writer.close()
            return
        self._tasks.add(task)
        try:
            remote_reader, remote_writer = await self._connect()
            await asyncio.gather(_copy(reader, remote_writer), _copy(remote_reader, writer))
        except (OSError, TimeoutError):
            # The caller sees its connection close, and tries again.
            pass
        finally:
            writer.close()
            self._tasks.discard(task)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(COPY_BYTES):
            writer.write(chunk)
            await writer.drain()
    finally:
        with contextlib.suppress(OSError):
            writer.close()


def open_relay(manifest: Manifest, directory: Path, name: str) -> Relay | None:
    """Open a relay to a remote sidecar; None when it is to be reached without TLS."""
    if manifest.tls is None:
        return None
    path = directory / f"{name}.sock"
    rundir.check_socket_path(path)
    return Relay(manifest, path)


def _tls_context(manifest: Manifest) -> ssl.SSLContext:
    assert manifest.tls is not None
    try:
        context = ssl.create_default_context(cafile=str(manifest.tls.authority))
        context.load_cert_chain(str(manifest.tls.certificate), str(manifest.tls.key))
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(f"the TLS files of plugin {manifest.name} cannot be used: {error}") from None
    context.set_alpn_protocols(["h2"])
    return context
