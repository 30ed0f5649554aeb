"""What each command does and answers."""

import asyncio
import importlib.metadata
import logging
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from utterd.daemon import health, protocol, qualities
from utterd.daemon.instructions import Silent
from utterd.daemon.protocol import ProtocolError
from utterd.daemon.server import Peer
from utterd.daemon.service import Service
from utterd.daemon.synthesis import Job
from utterd.engine.cache.database import clear

log = logging.getLogger("commands")

OWN_SOUNDS = Path(__file__).parent / "sounds"
RELEASE = importlib.metadata.version("utterd")
"""Of the code that runs; what is installed may have changed since."""

Reply = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A command's circumstances."""

    client: str
    received_ns: int
    is_connected: Callable[[], bool]
    """Whether the client is still there."""
    answer: Callable[..., None]
    """Sends a reply, and frames behind it."""


class Commands:
    """Carries out commands.

    Args:
        service: the daemon.
        reply: sends a reply, and frames behind it, to a peer.
    """

    def __init__(self, service: Service, reply: Callable[..., None]) -> None:
        self._service = service
        self._reply = reply
        self._handlers: dict[type, Callable[[Any, Call], Reply | None]] = {
            protocol.Speak: self._speak,
            protocol.PlaySound: self._play_sound,
            protocol.Append: self._append,
            protocol.Finish: self._finish,
            protocol.SayAgain: self._say_again,
            protocol.Synthesize: self._synthesize,
            protocol.Cancel: self._cancel,
            protocol.Stop: self._stop,
            protocol.Skip: self._skip,
            protocol.Pause: self._pause,
            protocol.Resume: self._resume,
            protocol.Status: self._status,
            protocol.Voices: self._voices,
            protocol.Info: self._info,
            protocol.Health: self._health,
            protocol.Metrics: self._metrics,
            protocol.Warmup: self._warm_up,
            protocol.Load: self._warm_up,
            protocol.Unload: self._unload,
            protocol.Forget: self._forget,
            protocol.Set: self._set,
            protocol.Ping: self._ping,
            protocol.Describe: self._describe,
        }

    def handle(self, frame: bytes, peer: Peer) -> None:
        """Carry out one command and answer it, now or when it is done.

        Raises:
            ProtocolError: to be answered instead.
        """
        received_ns = time.monotonic_ns()
        command, _ = protocol.decode(frame)

        def answer(body: Reply, *frames: bytes) -> None:
            self._reply(peer, body, *frames)

        name = command.client or peer.name
        call = Call(name, received_ns, lambda: peer.is_connected, answer)
        reply = self._handlers[type(command)](command, call)
        self._service.carry_out()  # first: the worker gets its text before the client its answer
        if reply is not None:
            answer(reply)

    # A handler gives its reply, or None where it answers later.

    def _speak(self, command: protocol.Speak, call: Call) -> Reply:
        service = self._service
        voice = service.voices.choose(command)
        service.workers.admit(voice[0])
        if command.format == "sound":
            path = sound_file(service.config.sounds_dir, command.text)
            command = msgspec.structs.replace(command, text=str(path))
        utterance = service.scheduler.speak(
            command,
            call.client,
            voice,
            call.received_ns,
            time.monotonic_ns(),
            admit=service.durable.admit,
        )
        log.info("accepted", extra={"client": call.client, "utterance": utterance.id})
        log.debug("text", extra={"utterance": utterance.id, "text": command.text})
        return {
            "ok": True,
            "id": utterance.id,
            "client": call.client,
            "voice": "/".join(voice).strip("/"),
        }

    def _play_sound(self, command: protocol.PlaySound, call: Call) -> Reply:
        return self._speak(command.as_speech(), call)

    def _append(self, command: protocol.Append, call: Call) -> Reply:
        scheduler = self._service.scheduler
        if (utterance := scheduler.line.known.get((call.client, command.id))) is not None:
            self._service.durable.make_room(utterance, command.text)
        scheduler.append(call.client, command.id, command.text, call.received_ns)
        self._keep(call.client, command.id)
        return {"ok": True, "id": command.id}

    def _finish(self, command: protocol.Finish, call: Call) -> Reply:
        self._service.scheduler.finish(call.client, command.id, call.received_ns)
        with suppress(ProtocolError):  # all that was confirmed is on disk; the trouble is told
            self._keep(call.client, command.id)
        return {"ok": True, "id": command.id}

    def _keep(self, client: str, id_: str) -> None:
        """Text that was added to a durable utterance is on disk before that is confirmed."""
        if (utterance := self._service.scheduler.line.known.get((client, id_))) is not None:
            self._service.durable.extend(utterance)

    def _say_again(self, command: protocol.SayAgain, call: Call) -> Reply:
        last = self._service.scheduler.line.records.last_of.get(call.client)
        if last is None:
            raise ProtocolError("unknown_id", "this client has not said anything yet")
        return self._speak(last.again(command.id), call)

    def _synthesize(self, command: protocol.Synthesize, call: Call) -> None:
        service = self._service
        if command.format == "sound":
            raise ProtocolError("bad_request", "a sound is there already: read its file", "format")
        limit = service.config.limits.characters
        if len(command.text) > limit:
            raise ProtocolError(
                "too_long",
                f"the text has {len(command.text)} characters; at most {limit} are spoken at once",
                "text",
            )
        voice, speaker = service.voices.choose(command)
        service.workers.admit(voice)

        def reply(body: Reply, samples: bytes) -> None:
            call.answer(body, *([samples] if body["ok"] else []))

        id_ = command.id or "samples"
        service.desk.add(
            Job(command, id_, voice, speaker, reply, call.received_ns, call.is_connected)
        )

    def _cancel(self, command: protocol.Cancel, call: Call) -> None:
        ticket = self._service.scheduler.cancel(
            call.received_ns, call.client, command.id, everyone=command.all
        )
        self._when_silent(ticket, call)

    def _stop(self, _: protocol.Stop, call: Call) -> None:
        self._when_silent(self._service.scheduler.stop(call.received_ns), call)

    def _skip(self, _: protocol.Skip, call: Call) -> None:
        self._when_silent(self._service.scheduler.stop(call.received_ns, "skipped"), call)

    def _pause(self, _: protocol.Pause, call: Call) -> None:
        self._when_silent(self._service.scheduler.pause(call.received_ns), call)

    def _when_silent(self, ticket: int, call: Call) -> None:
        def then(silent: Silent) -> None:
            after_ms = (silent.silent_ns - call.received_ns) / 1e6 if silent.silent_ns else 0.0
            reply: Reply = {
                "ok": True,
                "cancelled": silent.cancelled,
                "silent_after_ms": round(max(0.0, after_ms), 3),
            }
            if self._service.durable.behind:  # what was durable may come again after a crash
                reply["unrecorded"] = self._service.durable.behind
            call.answer(reply)

        self._service.when_silent(ticket, then)

    def _resume(self, _: protocol.Resume, __: Call) -> Reply:
        self._service.scheduler.resume()
        return {"ok": True}

    def _status(self, command: protocol.Status, call: Call) -> Reply:
        scheduler = self._service.scheduler
        if not command.id:
            return {"ok": True} | scheduler.line.snapshot()
        key = (call.client, command.id)
        if (utterance := scheduler.line.known.get(key)) is not None:
            return {"ok": True, "utterance": utterance.describe()}
        if (event := scheduler.line.records.terminal.get(key)) is not None:
            return {"ok": True, "utterance": {"id": command.id, "state": "over"}, "terminal": event}
        raise ProtocolError("unknown_id", f"no utterance {command.id!r} of this client", "id")

    def _voices(self, _: protocol.Voices, __: Call) -> Reply:
        return {"ok": True, "voices": self._service.voices.describe()}

    def _info(self, _: protocol.Info, __: Call) -> Reply:
        config = self._service.config
        return {
            "ok": True,
            "name": "utterd",
            "release": RELEASE,
            "protocol": protocol.VERSION,
            "python": sys.version.split()[0],
            "control": config.control,
            "events": config.events,
            "reference": config.reference,
            "data_dir": str(config.data_dir),
            "sink": config.audio.sink,
            "device": config.audio.device,
            "default_voice": self._service.voices.default(),
            "qualities": {q: self._service.voices.of_quality(q) for q in qualities.QUALITIES},
            "measure_again": self._service.voices.stale,
        }

    def _health(self, _: protocol.Health, __: Call) -> Reply:
        return health.describe(self._service)

    def _metrics(self, _: protocol.Metrics, __: Call) -> Reply:
        return {"ok": True} | health.measure(self._service)

    def _unload(self, command: protocol.Unload, _: Call) -> Reply:
        service = self._service
        voice, _speaker = service.voices.resolve(command.voice)
        if service.needs(voice):
            raise ProtocolError("unavailable", f"the voice {voice} has something to say", "voice")
        service.unload(voice)
        return {"ok": True, "voice": voice}

    def _forget(self, _: protocol.Forget, call: Call) -> None:
        folder = self._service.config.cache_dir
        clearing = asyncio.get_running_loop().run_in_executor(None, clear, folder)

        def then(done: "asyncio.Future[int]") -> None:
            self._service.workers.forget()  # not before: they empty the disk too, uncounted
            if (error := done.exception()) is not None:
                call.answer(protocol.error_reply(ProtocolError("internal", str(error))))
            else:
                call.answer({"ok": True, "deleted": done.result()})

        clearing.add_done_callback(then)

    def _set(self, command: protocol.Set, _: Call) -> Reply:
        service = self._service
        if command.gain is not None:
            service.ring.gain = command.gain
        if command.voice is not None:
            service.voices.resolve(command.voice)
            service.voices.prefer(command.voice)
        return {"ok": True, "gain": service.ring.gain, "voice": service.voices.default()}

    def _warm_up(self, command: protocol.Warmup | protocol.Load, call: Call) -> None:
        voices = self._service.voices
        voice, _ = voices.resolve(command.voice or voices.default())

        def then(problem: str) -> None:
            if problem:
                call.answer(protocol.error_reply(ProtocolError("unavailable", problem)))
            else:
                call.answer({"ok": True, "voice": voice})

        self._service.when_warm(voice, then)

    def _ping(self, _: protocol.Ping, call: Call) -> Reply:
        return {"ok": True, "version": protocol.VERSION, "monotonic_ns": call.received_ns}

    def _describe(self, _: protocol.Describe, __: Call) -> Reply:
        return {"ok": True, "version": protocol.VERSION, "schema": protocol.schema()}


def sound_file(folder: Path, name: str) -> Path:
    """The file that a sound's name means: of the sound folder, or one of our own.

    Nothing outside of these can be named.

    Raises:
        ProtocolError: `bad_request`, no such file there.
    """
    for place in (folder, OWN_SOUNDS):
        path = place / name
        inside = "\0" not in name and path.resolve().is_relative_to(place.resolve())
        with suppress(OSError):  # a name that no file can have, such as a very long one
            if inside and path.is_file():
                return path
    raise ProtocolError("bad_request", f"there is no sound {name!r} in {folder}", "text")
