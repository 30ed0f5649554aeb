"""Who may use a bridge over HTTP: any program of this machine, no web page, others by a token.

A browser lets every page send requests to the loopback address. It names the page in `Origin`
wherever a request could do something; a page whose name was made to point here (DNS rebinding) is
told by `Host`.
"""

import hmac
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from aiohttp import hdrs, web

from utterd.daemon.config import ConfigError


class Guard:
    """Lets requests in.

    Args:
        token: that every request must bear; empty: none.
        origins: of the web pages that may call, as their browsers write them.
    """

    def __init__(self, token: str, origins: Sequence[str]) -> None:
        self._token = token
        self._origins = frozenset(origins)

    def check(self, request: web.Request) -> None:
        """Let it in.

        Raises:
            HTTPForbidden: it comes from a web page.
            HTTPUnauthorized: it does not bear the token.
        """
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is not None and origin not in self._origins:
            raise web.HTTPForbidden(
                reason=f"web pages of {origin!r} may not call; `--allow-origin` would let them"
            )
        if self._is_preflight(request):
            return  # browsers send no token with it, and nothing is done
        if self._token:
            scheme, _, given = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
            right = hmac.compare_digest(given.strip().encode(), self._token.encode())
            if scheme.lower() != "bearer" or not right:
                raise web.HTTPUnauthorized(
                    reason="the header `Authorization: Bearer TOKEN` is missing or wrong",
                    headers={hdrs.WWW_AUTHENTICATE: "Bearer"},
                )
        elif not _is_here(request.host):
            raise web.HTTPForbidden(
                reason=f"call this machine localhost or by its address, not {request.host!r}"
            )

    def _is_preflight(self, request: web.Request) -> bool:
        return request.method == hdrs.METH_OPTIONS and hdrs.ORIGIN in request.headers

    def preflight(self, request: web.Request) -> web.Response | None:
        """The answer to a browser that asks whether its page may call; None for all else."""
        if not self._is_preflight(request):
            return None
        allowed = {
            hdrs.ACCESS_CONTROL_ALLOW_METHODS: "GET, POST",
            hdrs.ACCESS_CONTROL_ALLOW_HEADERS: "Authorization, Content-Type",
            hdrs.ACCESS_CONTROL_MAX_AGE: "600",
        }
        return web.Response(status=204, headers=allowed)

    def sign(self, request: web.Request, response: web.StreamResponse) -> None:
        """Let a page that was let in read the answer."""
        if request.headers.get(hdrs.ORIGIN, "") in self._origins:
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = request.headers[hdrs.ORIGIN]
            response.headers[hdrs.VARY] = hdrs.ORIGIN


def _is_here(host: str) -> bool:
    """Whether `Host` is `localhost` or an address, with or without a port."""
    name, colon, port = host.rpartition(":")
    if not colon or not port.isdecimal():
        name = host
    if name.lower() == "localhost":
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def read_token(file: Path | None) -> str:
    """The token in a file; empty where none is named.

    Raises:
        ConfigError: it can't be read or used.
    """
    if file is None:
        return ""
    try:
        token = file.read_text(encoding="ascii").strip()
    except OSError as error:
        raise ConfigError(f"{file}: can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        token = ""
    if len(token) < 16 or len(token.split()) != 1:
        raise ConfigError(
            f"{file}: not a token: one ASCII word of 16 characters or more, "
            "such as `openssl rand -hex 32` makes"
        )
    return token


def read_address(listen: str, *, open_to_all: bool) -> tuple[str, int]:
    """Address and port to listen on.

    Args:
        listen: `ADDRESS:PORT`; an IPv6 address stands in brackets.
        open_to_all: whether it may be one that other machines reach.

    Raises:
        ConfigError: it is none, or not the loopback one and there is no token.
    """
    host, _, port = listen.rpartition(":")
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
        number = int(port) if port.isdecimal() else -1
    except ValueError:
        number = -1
    if not 0 <= number <= 65535:
        raise ConfigError(f"--listen {listen}: not ADDRESS:PORT, such as 127.0.0.1:8317")
    if not address.is_loopback and not open_to_all:
        raise ConfigError(
            f"--listen {listen}: other machines could speak here; "
            "name a --token-file, or listen on 127.0.0.1"
        )
    return str(address), number


def read_origin(origin: str) -> str:
    """An origin as browsers write it: `SCHEME://HOST` or `SCHEME://HOST:PORT`.

    Raises:
        ConfigError: it is none.
    """
    scheme, _, host = origin.partition("://")
    if not scheme or not host or "/" in host or "*" in host:
        raise ConfigError(
            f"--allow-origin {origin}: not an origin, such as http://localhost:3000 (no path)"
        )
    return origin.lower()
