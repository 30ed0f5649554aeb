"""The daemon's heart: takes stimuli from sockets, children and clock, and does what follows."""

import asyncio
import logging
import os
import time
from collections.abc import Callable

from utterd.audio import messages as audio
from utterd.audio.ring import Ring
from utterd.daemon import events, instructions, shortcomings
from utterd.daemon.allotment import Allotment
from utterd.daemon.breaker import State as BreakerState
from utterd.daemon.config import Config
from utterd.daemon.device_news import DeviceNews
from utterd.daemon.ducking import Ducking
from utterd.daemon.durable import Durable
from utterd.daemon.metrics import Metrics
from utterd.daemon.player import Player
from utterd.daemon.protocol import ProtocolError
from utterd.daemon.publisher import Publisher
from utterd.daemon.renewal import Renewal
from utterd.daemon.restoring import restore
from utterd.daemon.scheduler import Scheduler
from utterd.daemon.supervisor import State as ChildState
from utterd.daemon.synthesis import Desk
from utterd.daemon.troubles import Troubles
from utterd.daemon.utterance import State as UtteranceState
from utterd.daemon.voices import Voices
from utterd.daemon.workers import SILENT_NS, Workers
from utterd.engine import messages as engine
from utterd.sysconfig.client import Seats

log = logging.getLogger("service")

CHECK_S = 1.0
"""How often the children's signs of life are looked at."""


class Service:
    """Everything but the sockets.

    Args:
        config: checked.
        send: publishes topic and body of an event.
        renew: gets the reason why another daemon should take the place of this one.

    Raises:
        utterd.sysconfig.config.ConfigError: `[tune]` does not fit the machine.
    """

    def __init__(
        self,
        config: Config,
        send: Callable[[bytes, bytes], None],
        renew: Callable[[str], None],
    ) -> None:
        self.config = config
        self._renew = renew
        self.began_ns = time.monotonic_ns()
        self.metrics = Metrics()
        self.voices = Voices(config.data_dir, config.engine)
        self.ring = Ring.create()
        self.ring.gain = config.audio.gain
        self.scheduler = Scheduler(
            max_waiting=config.limits.waiting,
            max_characters=config.limits.characters,
            stream_flush_ns=config.limits.stream_flush_ms * 1_000_000,
            stream_end_ns=int(config.limits.stream_end_s * 1e9),
            revoke=self._revoke,
        )
        self.desk = Desk(config.limits.waiting)
        self.publisher = Publisher(send)
        self.durable = Durable(config.data_dir / "journal.sqlite")
        self.ducking = Ducking(config.ducking.begin, config.ducking.end)
        self.wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        seats = Seats.from_table(config.tune)
        log.info(seats.describe())
        self.player = Player(config, self.ring, self.wake_fd, seats=seats, listener=self)
        self.workers = Workers(
            config, self.voices, self.ring, self.wake_fd, seats=seats, listener=self
        )
        self._allotment = Allotment(self.scheduler.line.way, self.desk, self.workers, self.ring)
        self.closing = False
        self.troubles = Troubles(self.emit)
        self.no_default = ""
        """Why there is no default voice: the wanted one is not there, or can't be read."""
        self._device = DeviceNews(self.emit)
        self._player_restarts = 0
        """Of the player when it last opened the device."""
        self._player_renewals = 0
        self.renewal = Renewal(
            config.data_dir / "handover", config.limits.daemon_rss_mb, self.began_ns
        )
        self._speaking = False
        self._tickets: dict[int, Callable[[instructions.Silent], None]] = {}
        self._warm_waiters: dict[str, list[Callable[[str], None]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._check_timer: asyncio.TimerHandle | None = None
        self._checked_ns = self.began_ns

    def start(self) -> None:
        """Start the player and the default voice; durable texts first, their voice hurries."""
        self._take_over()
        self.workers.start()
        self.player.start()
        restore(self.durable, self.voices, self.scheduler)
        self.carry_out()
        self._load_default()
        self._check()

    def close(self) -> None:
        """Fade, tell every utterance's end, end the children. Blocks for less than a second."""
        self.closing = True
        for timer in (self._timer, self._check_timer):
            if timer is not None:
                timer.cancel()
        self.scheduler.close(time.monotonic_ns())
        self.desk.close()
        self.carry_out()
        self.publisher.flush()
        self.ducking.close()
        self.durable.close()
        self.player.stop(timeout_s=0.5)
        self.workers.stop(timeout_s=0.3)
        self.ring.close()
        os.close(self.wake_fd)

    def is_idle(self) -> bool:
        """Whether nothing sounds, waits, is held or being made, for anyone."""
        line = self.scheduler.line
        return (
            self.scheduler.is_silent
            and not line.waiting
            and not line.paused
            and self.desk.is_idle
            and not self._warm_waiters
            and not self._tickets
            and not self.publisher.next_ns()
        )

    def ready(self) -> None:
        """The voice is warm; who subscribed to an earlier daemon is back by now."""
        if self.renewal.because:
            self.emit(events.Recovered(what="daemon", message="it is ready again"))

    def hand_over(self) -> None:
        """Write down for the next daemon what clients rely on; the journal has the texts."""
        self.renewal.hand_over(
            self.scheduler.line.records, gain=self.ring.gain, voice=self.voices.preferred
        )

    # ---- what commands need ----

    def progressing(self) -> bool:
        """Whether the way from text to sound is alive: what systemd's watchdog is fed for.

        Children that are being started again count as progress; a child that should talk and
        does not, and that we failed to replace, does not.
        """
        now_ns = time.monotonic_ns()
        workers = self.workers
        children = [self.player.child, workers.nursery]
        children += [worker.child for worker in workers.by_voice.values()]
        return all(
            now_ns - child.heard_ns < 2 * SILENT_NS
            for child in children
            if child.state is ChildState.READY
        )

    def when_silent(self, ticket: int, then: Callable[[instructions.Silent], None]) -> None:
        """Call `then` when what a ticket stands for is silent at the DAC."""
        self._tickets[ticket] = then
        self.carry_out()

    def when_warm(self, voice: str, then: Callable[[str], None]) -> None:
        """Call `then` with "" once a voice is warm, or with the reason why it can't be."""
        worker = self.workers.load(voice)
        if worker.ready is not None:
            then("")
        else:
            self._warm_waiters.setdefault(voice, []).append(then)

    def needs(self, voice: str) -> bool:
        """Whether a voice has anything to say, or samples to make, now or next."""
        return self.scheduler.line.needs(voice) or self.desk.needs(voice)

    def unload(self, voice: str) -> None:
        """End the worker of a voice that has nothing to do; who waits for it to be warm is told."""
        self.workers.unload(voice)
        self.troubles.recover(f"voice {voice}", "it was unloaded")
        self.scheduler.worker_unloaded(voice)
        for then in self._warm_waiters.pop(voice, []):
            then(f"the voice {voice} was unloaded while it was being loaded")

    def carry_out(self) -> None:
        """Do what the scheduler and the desk have decided, and set the clock for what follows."""
        for instruction in self.scheduler.drain():
            match instruction:
                case instructions.Emit():
                    self.emit(instruction.event, instruction.at_ns)
                case instructions.Send():
                    self._allotment.speak(instruction.voice, instruction.message)
                case instructions.Need():
                    self.workers.load(instruction.voice)
                case instructions.Silent():
                    self._silent(instruction)
        self.ring.fence = max(self.ring.fence, self.scheduler.line.way.fence)
        self.player.expect(bool(self.scheduler.line.way.on_way))
        self._allotment.serve()
        self._tell_speaking()
        self._set_timer()

    def emit(self, event: events.Event, at_ns: int = 0) -> None:
        """Publish an event, and count it."""
        self.metrics.event(event)
        self.durable.see(event, closing=self.closing)
        self.publisher.publish(event, at_ns)

    # ---- what children say ----

    def worker_ready(self, voice: str, ready: engine.Ready) -> None:
        """A voice is warm."""
        log.info(
            "voice ready",
            extra={
                "voice": voice,
                "runtime": ready.runtime,
                "load_ms": round(ready.load_ms),
                "warm_ms": round(ready.warm_ms),
                "real_time_factor": round(ready.real_time_factor, 3),
            },
        )
        if self.workers.by_voice[voice].breaker.state is not BreakerState.OPEN:
            self.troubles.recover(f"voice {voice}", "its worker is ready again")
        for then in self._warm_waiters.pop(voice, []):
            then("")
        self.scheduler.worker_ready(voice, ready.sample_rate)
        self.carry_out()

    def worker_lost(self, voice: str, reason: str) -> None:
        """A worker died; it is started again."""
        if self.closing:
            return
        message = f"its worker ended ({reason}); it is started again"
        self.troubles.degrade(f"voice {voice}", message)
        self.desk.worker_lost(voice)
        self.scheduler.worker_lost(voice, self.ring.written, time.monotonic_ns())
        self.carry_out()

    def worker_renewing(self, voice: str, reason: str) -> None:
        """A worker that has nothing to do is started anew."""
        self.scheduler.worker_unloaded(voice)
        self.renewing(f"voice {voice}", reason)

    def worker_broken(self, voice: str, message: str) -> None:
        """A voice can't be loaded."""
        self.troubles.degrade(f"voice {voice}", message)
        for then in self._warm_waiters.pop(voice, []):
            then(message)
        self.desk.voice_broken(voice, message)
        self.scheduler.voice_broken(voice, message, time.monotonic_ns())
        self.carry_out()

    def worker_said(self, voice: str, message: engine.FromWorker) -> None:
        """A worker tells of its work."""
        now_ns = time.monotonic_ns()
        self.desk.worker_said(message, now_ns)
        if isinstance(message, engine.Pcm):
            return  # samples of one job change nothing for any other
        if isinstance(message, engine.Finished):
            self.metrics.overhead(message.overhead_ms)
            self.troubles.recover(f"voice {voice}", "its worker speaks again")
        self.scheduler.worker_said(message, now_ns)
        self.carry_out()

    def player_said(self, message: audio.FromPlayer) -> None:
        """The player tells of a generation."""
        self.scheduler.sounding.player_said(message, time.monotonic_ns())
        self.carry_out()

    def renewing(self, what: str, reason: str) -> None:
        """A child that has nothing to do is started anew."""
        self.troubles.degrade(what, f"{reason}; it is started anew")

    def device_changed(self, opened: audio.Opened | None, lost: audio.DeviceLost | None) -> None:
        """The device was opened or lost."""
        if opened is not None:
            self._player_plays()
            self._device.opened(opened, woken=self.player.woken)
        elif lost is not None and not self.closing:
            self.scheduler.sounding.device_lost(time.monotonic_ns())
            self._device.lost(lost)

    # ---- inside ----

    def _take_over(self) -> None:
        if (handover := self.renewal.take_over()) is not None:
            self.ring.gain = handover.gain
            self.voices.prefer(handover.voice)
            handover.recall(self.scheduler.line.records)

    def _player_plays(self) -> None:
        """It has opened its device; perhaps it is another one than before."""
        child = self.player.child
        if child.restarts != self._player_restarts and not self.ring.used:
            self.scheduler.sounding.ring_played(time.monotonic_ns())
            self.carry_out()
        self._player_restarts = child.restarts
        if child.renewals != self._player_renewals:
            self._player_renewals = child.renewals
            self.troubles.recover("player", "it is ready again")

    def _forget_unwanted(self) -> None:
        """Make no samples for a client that is gone."""
        if self._allotment.forget_unwanted():
            self.carry_out()

    def _revoke(self, generation: int) -> int:
        self.ring.revoke(generation)
        os.eventfd_write(self.wake_fd, 1)
        return self.ring.begun

    def _silent(self, silent: instructions.Silent) -> None:
        then = self._tickets.pop(silent.ticket, None)
        if then is None:
            return
        wait_s = (silent.silent_ns - time.monotonic_ns()) / 1e9
        if wait_s > 0 and not self.closing:
            asyncio.get_running_loop().call_later(wait_s, then, silent)
        else:
            then(silent)

    def _tell_speaking(self) -> None:
        on_way = self.scheduler.line.way.on_way
        speaking = any(u.state is UtteranceState.SPEAKING for u in on_way) or (
            self._speaking and bool(on_way)
        )
        if speaking != self._speaking:
            self._speaking = speaking
            self.ducking.speaking(speaking)
            self.emit(events.Speaking(speaking=speaking))

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = [ns for ns in (self.scheduler.next_deadline_ns(), self.publisher.next_ns()) if ns]
        if due and not self.closing:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(min(due) / 1e9, self._due)

    def _due(self) -> None:
        now_ns = time.monotonic_ns() + 500_000  # the loop's clock rounds to about a millisecond
        self.scheduler.tick(now_ns)
        self.publisher.release(now_ns)
        self.carry_out()

    def _load_default(self) -> None:
        """Load the default voice; where there is none, `_check` looks again."""
        try:
            voice, _ = self.voices.resolve(self.voices.default())
        except ProtocolError as error:
            self.no_default = error.message
        else:
            self.no_default = ""
            self.workers.load(voice)

    def _check(self) -> None:
        self._check_timer = asyncio.get_running_loop().call_later(CHECK_S, self._check)
        if self.no_default:
            self._load_default()
        self._forget_unwanted()
        self.durable.catch_up()
        self.ducking.reap()
        self.troubles.look(shortcomings.find(self))
        now_ns = time.monotonic_ns()
        # A daemon that was stopped itself has not read yet what its children said meanwhile.
        if now_ns - self._checked_ns < 2 * CHECK_S * 1e9:
            self.player.check(idle=self.scheduler.is_silent)
            self.workers.check(self.needs)
            if self.renewal.is_due(idle=self.is_idle()):
                self.renewing("daemon", self.renewal.reason)
                self._renew(self.renewal.reason)
        self._checked_ns = now_ns
