"""A sidecar for tests of the host, from the generated stubs alone: well-behaved, unless its configuration says other.

Its mood is chosen by `mood` in Configure, or by a file named `mood` beside this one at its start.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from wherry.connector.v1 import plugin_pb2, plugin_pb2_grpc

over = threading.Event()
start_mood = (Path(__file__).with_name("mood").read_text().strip()) if Path(__file__).with_name("mood").exists() else ""


class Plugin(plugin_pb2_grpc.PluginServiceServicer):
    def Hello(self, request: Any, context: Any) -> Any:
        instance_id = "another" if start_mood == "wrong-instance" else os.environ["WHERRY_INSTANCE_ID"]
        return plugin_pb2.HelloResponse(plugin_name="moody", revision=1, instance_id=instance_id)

    def Configure(self, request: Any, context: Any) -> Any:
        print("configured", request.connector, request.generation, sorted(request.config), flush=True)
        mood = request.config.get("mood", "")
        if mood == "refuse":
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "topic must be given")
        elif mood == "hang":
            time.sleep(60)
        elif mood == "die":
            print("I have had enough", file=sys.stderr, flush=True)
            os._exit(7)
        elif mood == "leak":
            threading.Thread(target=leak, daemon=True).start()
        elif mood == "flood":
            threading.Thread(target=flood, daemon=True).start()
        elif mood == "child":
            print("child", subprocess.Popen(["sleep", "1000"]).pid, flush=True)
        elif mood == "stubborn":
            globals()["stubborn"] = True
        return plugin_pb2.ConfigureResponse()

    def Stop(self, request: Any, context: Any) -> Any:
        print("asked to stop", flush=True)
        over.set()
        return plugin_pb2.StopResponse()


stubborn = False


def leak() -> None:
    kept = []
    for _ in range(40):  # twice the limit, and no more: who watches may be slow
        kept.append(b"x" * 10_000_000)
        time.sleep(0.02)
    time.sleep(1000)


def flood() -> None:
    for number in range(10**9):
        print("drop", number, "of the flood")


class Health(health_pb2_grpc.HealthServicer):
    def Check(self, request: Any, context: Any) -> Any:
        sick = start_mood == "sick"
        response = health_pb2.HealthCheckResponse
        return response(status=response.NOT_SERVING if sick else response.SERVING)


def main() -> None:
    if start_mood == "crash":
        sys.exit("cannot find my hat")
    if start_mood == "mute":
        time.sleep(1000)
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.so_reuseport", 0)])
    plugin_pb2_grpc.add_PluginServiceServicer_to_server(Plugin(), server)
    health_pb2_grpc.add_HealthServicer_to_server(Health(), server)
    endpoint = os.environ["WHERRY_ENDPOINT"]
    folder = os.environ.get("MOODY_TLS")
    if folder:
        key, certificate, authority = (Path(folder, name).read_bytes() for name in ("side.key", "side.pem", "ca.pem"))
        credentials = grpc.ssl_server_credentials([(key, certificate)], authority, require_client_auth=True)
        endpoint = f"localhost:{server.add_secure_port(endpoint, credentials)}"
    else:
        server.add_insecure_port(endpoint)
    server.start()
    print("serving", endpoint, flush=True)
    over.wait()
    while stubborn:
        time.sleep(1)


if __name__ == "__main__":
    main()
