"""The sidecar host and sidecars on other machines: mutual TLS, and what is told when there is none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.test_host import MOODY, HostUnderTest
from tests.integration.test_host import host as host
from tests.integration.test_host import run_directory as run_directory

from wherry.connector.v1 import plugin_pb2, plugin_pb2_grpc
from wherry.contract import rpc
from wherry.contract.errors import AuthError, TransientError

pytestmark = pytest.mark.integration


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """An authority, a certificate of it for localhost, and one of a stranger."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make certificates")
    folder = tmp_path / "certificates"
    folder.mkdir()
    for name in ("ca", "stranger"):
        _openssl(
            folder, f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={name} -keyout {name}.key -out {name}.pem"
        )
    (folder / "san").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
    _openssl(folder, "req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout side.key -out side.csr")
    _openssl(
        folder, "x509 -req -in side.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san -out side.pem"
    )
    return folder


def _openssl(folder: Path, arguments: str) -> None:
    subprocess.run(["openssl", *arguments.split()], cwd=folder, check=True, capture_output=True, timeout=60)


def remote_plugin(directory: Path, port: int, certificate: Path, key: Path, authority: Path) -> Path:
    plugin = directory / "remote"
    plugin.mkdir()
    manifest = {
        "name": "moody",
        "version": "1",
        "classes": [{"class": "M", "role": "source"}],
        "remote": f"localhost:{port}",
        "tls": {"authority": str(authority), "certificate": str(certificate), "key": str(key)},
    }
    (plugin / "sidecar.yaml").write_text(json.dumps(manifest))
    return plugin


@pytest.fixture
def remote(certificates: Path) -> Iterator[int]:
    """The moody sidecar behind mutual TLS; gives its port."""
    environment = {**os.environ, "WHERRY_ENDPOINT": "localhost:0", "WHERRY_INSTANCE_ID": "far away"}
    environment["MOODY_TLS"] = str(certificates)
    process = subprocess.Popen(
        [sys.executable, "-m", "moody"], cwd=MOODY, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    yield int(process.stdout.readline().rpartition(":")[2])
    process.kill()
    process.wait()


def test_a_remote_sidecar_is_reached_by_mutual_tls(
    host: HostUnderTest, remote: int, certificates: Path, tmp_path: Path
) -> None:
    key = certificates / "side.key"
    acquired = host.acquire(
        plugin=remote_plugin(tmp_path, remote, certificates / "side.pem", key, certificates / "ca.pem")
    )
    assert acquired.endpoint.startswith("unix:///")
    with rpc.channel(acquired.endpoint) as channel:
        stub = plugin_pb2_grpc.PluginServiceStub(channel)
        assert stub.Hello(plugin_pb2.HelloRequest(), timeout=60).instance_id == "far away"


def test_a_remote_sidecar_we_do_not_trust_is_refused(
    host: HostUnderTest, remote: int, certificates: Path, tmp_path: Path
) -> None:
    key, stranger = certificates / "side.key", certificates / "stranger.pem"
    with pytest.raises(AuthError, match=r"localhost:\d+ and we do not trust each other: .*certificate verify failed"):
        host.acquire(plugin=remote_plugin(tmp_path, remote, certificates / "side.pem", key, stranger))


def test_a_remote_sidecar_that_does_not_trust_us_is_told(
    host: HostUnderTest, remote: int, certificates: Path, tmp_path: Path
) -> None:
    stranger = certificates / "stranger.pem"
    plugin = remote_plugin(tmp_path, remote, stranger, certificates / "stranger.key", certificates / "ca.pem")
    with pytest.raises((AuthError, TransientError), match=r"remote sidecar|not healthy in time"):
        host.acquire(plugin=plugin, timeout_ms=2000)


def test_a_remote_sidecar_that_is_not_there_is_told(host: HostUnderTest, certificates: Path, tmp_path: Path) -> None:
    key = certificates / "side.key"
    plugin = remote_plugin(tmp_path, 1, certificates / "side.pem", key, certificates / "ca.pem")
    with pytest.raises(TransientError, match="remote sidecar at localhost:1 cannot be reached"):
        host.acquire(plugin=plugin)
