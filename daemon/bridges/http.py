"""`utterd http`: the daemon for programs that speak OpenAI's API of speech over HTTP."""

import argparse
import asyncio
import json
import logging
import math
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import hdrs, web

from utterd.daemon.bridges.formats import PCM_RATE, TYPES, Format, Resampler, wav_header, whole
from utterd.daemon.bridges.guard import Guard, read_address, read_origin, read_token
from utterd.daemon.bridges.link import Answers, Link
from utterd.daemon.config import Config
from utterd.daemon.protocol import ProtocolError
from utterd.daemon.refused import explain

log = logging.getLogger("http")

BODY_S = 30.0
"""A request must have come whole by then."""
STATUS = {
    "bad_request": 400,
    "too_long": 413,
    "queue_full": 429,
    "unknown_voice": 404,
    "unknown_id": 404,
    "unavailable": 503,
}
"""By the daemon's code; 500 for all others."""
CODES = {
    401: "unauthorized",
    403: "forbidden",
    404: "not_offered",
    405: "not_offered",
    408: "timeout",
    413: "too_long",
}
"""Of what is refused here."""
PARAMETERS = {"text": "input", "rate": "speed"}
"""OpenAI's name of what the daemon calls otherwise."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class SpeechRequest(msgspec.Struct, frozen=True):
    """The body of `POST /v1/audio/speech`; other fields, such as `model`, mean nothing here."""

    input: str
    """The text."""
    voice: str = ""
    """`NAME` or `NAME/SPEAKER`; empty for the daemon's default."""
    response_format: Format = "wav"
    """`pcm` has `PCM_RATE`, the others the voice's own rate; all are mono with 16 bits."""
    speed: float = 1.0
    stream: bool = True
    """Send sound as it is made (`pcm`, `wav`; the WAV header then tells no length)."""


class Bridge:
    """Answers requests.

    Args:
        config: of the daemon.
        guard: lets requests in.
    """

    def __init__(self, config: Config, guard: Guard) -> None:
        self._guard = guard
        self._link = Link(config)
        self.app = web.Application(
            client_max_size=config.limits.message_bytes, middlewares=[self._answer_errors]
        )
        self.app.add_routes(
            [
                web.post("/v1/audio/speech", self._speech),
                web.get("/v1/audio/voices", self._voices),
                web.post("/v1/speak", self._speak),
                web.get("/health", self._health),
            ]
        )
        self.app.on_response_prepare.append(self._sign)
        self.app.on_cleanup.append(self._close)

    async def _sign(self, request: web.Request, response: web.StreamResponse) -> None:
        self._guard.sign(request, response)

    async def _close(self, _: web.Application) -> None:
        self._link.close()

    @web.middleware
    async def _answer_errors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let a request in; tell what can't be done as OpenAI does."""
        try:
            self._guard.check(request)
            return self._guard.preflight(request) or await handler(request)
        except ProtocolError as error:
            return _refusal(error)
        except web.HTTPException as error:
            code = CODES.get(error.status, "bad_request")
            message = {
                "not_offered": f"{request.method} {request.path} is not offered",
                "too_long": f"the body is too long: {error.text}",
            }.get(code, error.reason)
            kept: dict[str, str] = {
                name: error.headers[name]
                for name in (hdrs.WWW_AUTHENTICATE, hdrs.ALLOW)
                if name in error.headers
            }
            return _error(error.status, code, message, headers=kept)
        except ConnectionError:
            # The client is gone. Raised on, aiohttp would log it as a fault of ours.
            log.info("a client hung up", extra={"path": request.path})
            return web.Response(status=499)
        except Exception:
            log.exception("a request failed", extra={"path": request.path})
            return _error(500, "internal", "the bridge could not do this; see its log")

    async def _speech(self, request: web.Request) -> web.StreamResponse:
        body = await _body(request)
        try:
            wanted = msgspec.convert(body, SpeechRequest)
        except msgspec.ValidationError as error:
            message, _, path = str(error).partition(" - at `$.")
            name = path.rstrip("`")
            told = explain(message, name, (SpeechRequest,))
            raise ProtocolError("bad_request", told, name) from None
        if body.get("stream_format", "audio") != "audio":
            raise ProtocolError("bad_request", "only `audio` is offered", "stream_format")
        fields = {"text": wanted.input, "voice": wanted.voice, "rate": wanted.speed}
        with self._link.ask("synthesize", stream=True, **fields) as answers:
            first = await answers.next()  # what is refused has a status of its own
            if wanted.stream and wanted.response_format != "flac":
                return await _stream(request, wanted.response_format, first, answers)
            head, samples = first
            chunks = [samples]
            while head["more"]:
                head, samples = await answers.next()
                chunks.append(samples)
        _check(head, sum(map(len, chunks)))
        file = await asyncio.to_thread(
            whole, wanted.response_format, b"".join(chunks), head["sample_rate"]
        )
        return web.Response(body=file, content_type=TYPES[wanted.response_format])

    async def _speak(self, request: web.Request) -> web.Response:
        body = await _body(request)
        if "command" in body:
            raise ProtocolError("bad_request", "the command is `speak`", "command")
        try:
            return web.json_response(await self._link.call("speak", **({"client": "http"} | body)))
        except ProtocolError as error:
            return _refusal(error, names={})

    async def _voices(self, _: web.Request) -> web.Response:
        voices = (await self._link.call("voices"))["voices"]
        found = []
        for voice in voices:
            speakers = voice["speakers"] if len(voice["speakers"]) > 1 else []
            shared = {key: voice[key] for key in ("languages", "sample_rate", "licence")}
            for id_ in (voice["name"], *(f"{voice['name']}/{one}" for one in speakers)):
                default = voice["default"] and id_ == voice["name"]
                found.append({"id": id_, "name": id_, **shared, "default": default})
        return web.json_response({"voices": found})

    async def _health(self, _: web.Request) -> web.Response:
        health = await self._link.call("health")
        return web.json_response(health, status=200 if health["audible"] else 503)


async def _body(request: web.Request) -> dict[str, Any]:
    """The JSON object in a request.

    Raises:
        ProtocolError: `bad_request`, there is none.
        HTTPException: it is too long, or does not come.
    """
    try:
        async with asyncio.timeout(BODY_S):
            data = await request.read()
    except TimeoutError:
        raise web.HTTPRequestTimeout(reason="the body did not come") from None
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("bad_request", f"the body is not valid JSON: {error}") from None
    if not isinstance(body, dict):
        raise ProtocolError("bad_request", "the body is not a JSON object")
    return body


async def _stream(
    request: web.Request, format_: Format, first: tuple[dict[str, Any], bytes], answers: Answers
) -> web.StreamResponse:
    """Send samples as they come; what breaks off ends the connection, so that it shows."""
    head, samples = first
    rate = head["sample_rate"]
    resampler = Resampler(rate if format_ == "pcm" else PCM_RATE)
    response = web.StreamResponse()
    response.content_type = TYPES[format_]
    await response.prepare(request)
    if format_ == "wav":
        await response.write(wav_header(rate))
    received = len(samples)
    try:
        while True:
            await response.write(resampler.push(samples, last=not head["more"]))
            if not head["more"]:
                break
            head, samples = await answers.next()
            received += len(samples)
        _check(head, received)
    except ProtocolError as error:
        log.warning("a stream broke off", extra={"code": error.code, "reason": error.message})
        if request.transport is not None:
            request.transport.abort()
    return response


def _check(head: dict[str, Any], received: int) -> None:
    """Nothing is missing; tell the log of text that has no sound.

    Raises:
        ProtocolError: `internal`.
    """
    if received != 2 * head["samples"]:
        raise ProtocolError("internal", f"{received} of {2 * head['samples']} bytes came")
    if head["skipped"]:
        log.warning("parts of a text have no sound", extra={"parts": len(head["skipped"])})


def _refusal(error: ProtocolError, names: dict[str, str] = PARAMETERS) -> web.Response:
    """The daemon's error as OpenAI's, with the names that the client used."""
    field = names.get(error.field, error.field)
    told = error.message
    if error.code == "bad_request" and field and field not in told:
        told = f"{field}: {told}"
    headers: dict[str, str] = {}
    if wait_ms := error.extra.get("retry_after_ms"):
        headers[hdrs.RETRY_AFTER] = str(math.ceil(float(str(wait_ms)) / 1000))
    return _error(STATUS.get(error.code, 500), error.code, told, field or None, headers)


def _error(
    status: int,
    code: str,
    message: str,
    parameter: str | None = None,
    headers: dict[str, str] | None = None,
) -> web.Response:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    kind = {401: "authentication_error", 429: "rate_limit_error"}.get(status, kind)
    error = {"message": message, "type": kind, "param": parameter, "code": code}
    return web.json_response({"error": error}, status=status, headers=headers)


def serve(options: argparse.Namespace, config: Config) -> int:
    """Answer requests until SIGTERM or SIGINT.

    Raises:
        ConfigError: an option can't be used.
        OSError: the address can't be had.
    """
    token = read_token(options.token_file)
    host, port = read_address(options.listen, open_to_all=bool(token))
    guard = Guard(token, [read_origin(origin) for origin in options.allow_origin])
    asyncio.run(_run(Bridge(config, guard), host, port, config))
    return 0


async def _run(bridge: Bridge, host: str, port: int, config: Config) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    # A client that hangs up ends its handler, and with it the request's socket.
    runner = web.AppRunner(
        bridge.app, access_log=None, handler_cancellation=True, shutdown_timeout=1.0
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            why = error.strerror or str(error)
            raise OSError(
                f"can't listen on {host}:{port} ({why}); name another with --listen"
            ) from None
        for name, number, *_ in runner.addresses:
            place = f"[{name}]:{number}" if ":" in name else f"{name}:{number}"
            log.info("listening", extra={"address": place, "daemon": config.control})
        await stopped.wait()
    finally:
        await runner.cleanup()
