"""What the player says, and what follows: started, words and marks, underruns, ends."""

from utterd.audio import messages as audio
from utterd.daemon import events
from utterd.daemon.cutting import Cutting
from utterd.daemon.line import Line
from utterd.daemon.utterance import ON_ITS_WAY, State, Stimulus, Utterance


class Sounding:
    """Follows what is heard.

    Args:
        line: everything that lives.
        cutting: gets to know what of the cut generations was heard.
    """

    def __init__(self, line: Line, cutting: Cutting) -> None:
        self._line = line
        self._cutting = cutting
        self.text_waits = 0
        """Gaps that the player has counted where it was the text that was late."""

    def player_said(self, message: audio.FromPlayer, now_ns: int) -> None:
        """Take a message of the player about a generation."""
        utterance = self._line.way.current(getattr(message, "generation", 0))
        if utterance is not None:
            self._has_begun(utterance, now_ns)
        match message:
            case audio.Started() if utterance:
                self._sounds(utterance, message)
            case audio.Anchor() if utterance:
                utterance.anchor = (message.position, message.dac_ns)
            case audio.Underrun() if utterance:
                self._runs_dry(utterance, message)
            case audio.Ended() if utterance:
                self._ends(utterance, message, now_ns)
            case audio.Ended():
                self._ended_though_cut(message, now_ns)
            case audio.Dropped():
                self._cutting.settle(message.generation, message.samples, message.silent_ns)
        self._line.dispatch()

    def device_lost(self, now_ns: int) -> None:
        """Nothing sounds any more; what did stands still until its next anchor."""
        for utterance in self._line.way.on_way:
            utterance.stand_still(utterance.position_at(now_ns))

    def ring_played(self, now_ns: int) -> None:
        """A new player found an empty ring: its predecessor played all that was written."""
        way = self._line.way
        while way.on_way and not way.writes(way.on_way[0]):
            self._ends_untold(way.on_way[0], now_ns)
        self._line.dispatch()

    def cue(self, now_ns: int) -> None:
        """Publish the words and marks that sound by now."""
        for utterance in self._line.way.on_way[:1]:
            self._cue(utterance, now_ns)

    def next_cue_ns(self) -> int:
        """When `cue` is due; 0 if never, or if that can't be told yet."""
        on_way = self._line.way.on_way
        return on_way[0].next_cue_ns() if on_way else 0

    def _has_begun(self, utterance: Utterance, now_ns: int) -> None:
        """The ring keeps its order: what was before it is over, even if a lost player told not."""
        while not self._line.sounds_next(utterance):
            self._ends_untold(self._line.way.on_way[0], now_ns)

    def _sounds(self, utterance: Utterance, message: audio.Started) -> None:
        if utterance.state is not State.DISPATCHED:
            return  # a player that was started anew says so again
        utterance.apply(Stimulus.SOUND)
        sound_ns = message.first_sound_ns
        if utterance.started:
            resumed = events.Resumed(start=utterance.resume_at, dac_ns=sound_ns)
            self._line.emit(utterance, resumed, sound_ns)
            return
        utterance.started = True
        utterance.stages["first_sound"] = sound_ns
        started = events.Started(dac_ns=sound_ns, voice=utterance.voice)
        self._line.emit(utterance, started, sound_ns)

    def _runs_dry(self, utterance: Utterance, message: audio.Underrun) -> None:
        if message.missing_ms:
            utterance.stand_still(message.position)
        began_ns = message.ns - round(message.missing_ms * 1e6)
        if message.missing_ms and not (utterance.closed and utterance.closed_ns <= began_ns):
            self.text_waits += 1
            return
        count = message.count - self.text_waits
        underrun = events.Underrun(missing_ms=message.missing_ms, count=count)
        self._line.emit(utterance, underrun)

    def _cue(self, utterance: Utterance, now_ns: int) -> None:
        while (due := utterance.next_cue_ns()) and due <= now_ns:
            self._line.emit(utterance, *utterance.take_cue())

    def _ends(self, utterance: Utterance, message: audio.Ended, now_ns: int) -> None:
        for event, dac_ns in utterance.take_cues(message.dac_ns):
            self._line.emit(utterance, event, dac_ns)
        if utterance.state in ON_ITS_WAY:
            self._line.way.leave(utterance)
        else:
            self._line.waiting.remove(utterance)
        utterance.apply(Stimulus.FINISH)
        utterance.stages["last_sound"] = message.dac_ns
        ended = events.Ended(
            dac_ns=message.dac_ns,
            played_ms=utterance.played_ms(message.samples),
            stages=utterance.stages,
            durations_ms=utterance.durations_ms(),
        )
        self._line.leave(utterance, ended, message.dac_ns)

    def _ends_untold(self, utterance: Utterance, now_ns: int) -> None:
        """It was heard to its end, but the player died before it said so."""
        ended = audio.Ended(utterance.generation, utterance.known_samples, now_ns)
        self._ends(utterance, ended, now_ns)

    def _ended_though_cut(self, message: audio.Ended, now_ns: int) -> None:
        """Its last sample was with the device already when it was cut."""
        cuts = self._cutting.cuts
        cut = cuts.settling.get(message.generation)
        if cut is not None and cut.then == "displaced":
            cuts.take(message.generation)
            self._ends(cut.utterance, message, now_ns)
            cuts.silent(message.generation, message.dac_ns)
        else:
            self._cutting.settle(message.generation, message.samples, message.dac_ns)
