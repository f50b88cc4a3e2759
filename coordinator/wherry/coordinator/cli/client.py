"""Talks to a running worker's REST API, Wherry's or Kafka Connect's, and turns its errors into the command line's."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

import typer

from wherry.coordinator.cli.errors import CliError, ExitCode

URL_DEFAULT = "http://localhost:8083"
URL_VARIABLES = ["WHERRY_URL", "CONNECT_URL"]
_NOT_FOUND = 404
REQUEST_TIMEOUT_S = 95.0  # the server itself gives up after 90 s, and says so

UrlOption = Annotated[
    str, typer.Option("--url", "-u", envvar=URL_VARIABLES, help="Where the worker's REST API listens.")
]


class RestClient:
    """One server."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        if not self._url.startswith(("http://", "https://")):
            raise CliError(f"The address {url} is no URL.", f"It looks like {URL_DEFAULT}.", code=ExitCode.USAGE)

    def get(self, *path: str, query: str = "") -> Any:
        """Ask for a resource."""
        return self.request("GET", *path, query=query)

    def request(self, method: str, *path: str, body: object = None, query: str = "") -> Any:
        """Send a request; answers the parsed body, None when there is none.

        Raises:
            CliError: The server cannot be reached, knows no such thing, or says no.
        """
        target = f"{self._url}/{'/'.join(quote(part, safe='') for part in path)}{query}"
        content = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json", **({} if body is None else {"Content-Type": "application/json"})}
        request = urllib.request.Request(target, data=content, method=method, headers=headers)  # noqa: S310 - checked
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_TIMEOUT_S) as answer:  # noqa: S310 - checked
                return _parsed(answer.read())
        except urllib.error.HTTPError as error:
            raise _refusal(error) from None
        except (urllib.error.URLError, OSError) as error:
            reason = getattr(error, "reason", error)
            raise CliError(
                f"No worker answers at {self._url}: {getattr(reason, 'strerror', None) or reason}.",
                "Start one with `wherry standalone`, or say where it listens with --url or WHERRY_URL.",
                code=ExitCode.UNREACHABLE,
            ) from None
        except ValueError:
            raise CliError(
                f"What answers at {self._url} is no Kafka Connect REST API: its answer is no JSON.",
                "Say where the worker listens with --url or WHERRY_URL.",
                code=ExitCode.UNREACHABLE,
            ) from None


def _parsed(content: bytes) -> Any:
    return json.loads(content) if content.strip() else None


def _refusal(error: urllib.error.HTTPError) -> CliError:
    try:
        body = json.loads(error.read())
        message = str(body["message"]) if isinstance(body, Mapping) else ""
    except (ValueError, KeyError, OSError):
        message = ""
    code = ExitCode.NOT_FOUND if error.code == _NOT_FOUND else ExitCode.REFUSED
    return CliError(message or f"The worker answers with HTTP {error.code} {error.reason}.", code=code)
