"""Socket protocol, version 1: commands, replies, error codes, and their encodings.

A command is one frame: a UTF-8 JSON object, a msgpack map, or plain text to speak. It is answered
in kind. Every reply is `{"ok": true, ...}` or `{"ok": false, "error": {code, message, field}}`.
"""

import json
from typing import Annotated, Any, Literal, get_args

import msgspec

from utterd.daemon.halves import mend
from utterd.daemon.refused import explain

VERSION = 1

Code = Literal[
    "bad_request",
    "too_long",
    "queue_full",
    "unknown_voice",
    "unknown_id",
    "unavailable",
    "expired",
    "internal",
]
Encoding = Literal["json", "msgpack", "text"]
PriorityName = Literal["important", "message", "text", "notification", "progress"]

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
Rate = Annotated[float, msgspec.Meta(ge=0.5, le=3.0)]
Pitch = Annotated[float, msgspec.Meta(ge=0.5, le=2.0)]
Volume = Annotated[float, msgspec.Meta(ge=0.0, le=2.0)]
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=86_400_000)]


class ProtocolError(Exception):
    """A command that can't be carried out; becomes the error of its reply."""

    def __init__(self, code: Code, message: str, field: str = "", **extra: object) -> None:
        super().__init__(message)
        self.code: Code = code
        self.message = message
        self.field = field
        self.extra = extra


class Command(
    msgspec.Struct, tag_field="command", frozen=True, forbid_unknown_fields=True, kw_only=True
):
    """What every command may carry."""

    client: Annotated[str, msgspec.Meta(max_length=128)] = ""
    """Name of the client; ids are unique for it. Empty: the connection is the client."""


class Speech(Command, frozen=True):
    """What `speak` and `synthesize` share."""

    text: str
    id: Annotated[str, msgspec.Meta(max_length=128)] = ""
    """Unique for its client while the utterance lives; empty: the daemon chooses one."""
    voice: Annotated[str, msgspec.Meta(max_length=256)] = ""
    """`NAME` or `NAME/SPEAKER`; empty for the configured one."""
    language: Annotated[str, msgspec.Meta(max_length=35)] = ""
    """BCP 47; empty: told by the script."""
    rate: Rate = 1.0
    pitch: Pitch = 1.0
    volume: Volume = 1.0
    quality: Literal["", "fast", "balanced", "high"] = ""
    """Choose the voice by quality where `voice` is empty."""
    format: Literal["plain", "ssml", "sound"] = "plain"
    """`sound`: the text is the name of a file in the sound folder."""


class Speak(Speech, tag="speak", frozen=True):
    """Speak a text through the sound device."""

    priority: PriorityName = "message"
    queue: Literal["add", "flush", "replace"] = "add"
    """`flush`: cancel all of this client's utterances first; `replace`: only the one sounding."""
    interruptible: bool = True
    """False: no higher priority, `flush` or `replace` cuts it; `cancel` and `stop` still do."""
    ttl_ms: Milliseconds = 0
    """Dropped with reason `expired` if it has not begun to sound by then; 0: never."""
    marks: bool = False
    """Send `progress`, `word` and `mark` events."""
    more: bool = False
    """The text goes on in `append` commands and ends with `finish`."""
    durable: bool = False
    """Keep it on disk before it is accepted, and speak it, from the clause it was in, after any
    crash."""
    on_interrupt: Literal["resume", "restart", "drop"] = "resume"
    """What becomes of it after a higher priority cut it: go on from the clause it was in, begin
    again, or be cancelled."""
    key: Annotated[str, msgspec.Meta(max_length=128)] = ""
    """Utterances of one client with the same key: only the newest is kept waiting."""

    def again(self, id_: str) -> "Speak":
        """The same as a new utterance; a text that came in pieces is complete now."""
        return msgspec.structs.replace(self, id=id_, more=False)


class PlaySound(Command, tag="play_sound", frozen=True):
    """Play a sound icon, in turn with speech; short for `speak` with `format: sound`."""

    sound: str
    """Name of a WAV or FLAC file in the sound folder."""
    id: Annotated[str, msgspec.Meta(max_length=128)] = ""
    priority: PriorityName = "message"
    queue: Literal["add", "flush", "replace"] = "add"
    interruptible: bool = True
    ttl_ms: Milliseconds = 0
    volume: Volume = 1.0

    def as_speech(self) -> Speak:
        """The same as a `speak` command."""
        fields = msgspec.structs.asdict(self)
        return Speak(text=fields.pop("sound"), format="sound", **fields)


class Append(Command, tag="append", frozen=True):
    """More text for an utterance that was begun with `more`."""

    id: Id
    text: str


class Finish(Command, tag="finish", frozen=True):
    """The text of an utterance that was begun with `more` is complete."""

    id: Id


class Synthesize(Speech, tag="synthesize", frozen=True):
    """Samples back instead of sound: the reply's second frame holds mono PCM."""

    encoding: Literal["f32", "s16"] = "s16"
    """Little-endian float32 or signed 16-bit."""
    stream: bool = False
    """Send every chunk as a reply of its own, with `more` false on the last (DEALER only)."""


class Cancel(Command, tag="cancel", frozen=True):
    """Cancel one utterance, or all of a client's, or all."""

    id: str = ""
    all: bool = False
    """Also those of other clients."""


class Stop(Command, tag="stop", frozen=True):
    """Cancel what sounds now, whoever asked for it; what waits goes on."""


class Pause(Command, tag="pause", frozen=True):
    """Be silent and hold everything but `important` utterances."""


class Resume(Command, tag="resume", frozen=True):
    """Go on from the beginning of the clause that was cut by `pause`."""


class Skip(Command, tag="skip", frozen=True):
    """Leave out the rest of what sounds now and go on with the next utterance."""


class SayAgain(Command, tag="say_again", frozen=True):
    """Speak this client's last utterance again, as a new one."""

    id: Annotated[str, msgspec.Meta(max_length=128)] = ""
    """Id of the new utterance."""


class Status(Command, tag="status", frozen=True):
    """The state of one utterance, living or ended lately, or of the whole queue."""

    id: str = ""


class Voices(Command, tag="voices", frozen=True):
    """The installed voices."""


class Info(Command, tag="info", frozen=True):
    """Versions, configuration, paths."""


class Health(Command, tag="health", frozen=True):
    """Whether something can be heard now, through which device, with which voice."""


class Metrics(Command, tag="metrics", frozen=True):
    """Counters and stage histograms since the start."""


class Warmup(Command, tag="warmup", frozen=True):
    """Load a voice and return when it is warm."""

    voice: str = ""


class Load(Command, tag="load", frozen=True):
    """The same as `warmup`."""

    voice: str


class Unload(Command, tag="unload", frozen=True):
    """End the worker of a voice and free its memory; refused while it has something to say."""

    voice: str


class Forget(Command, tag="forget", frozen=True):
    """Delete what was said from the cache, in memory and on disk; answered when it is done."""


class Set(Command, tag="set", frozen=True):
    """Change what holds for everyone until the daemon ends; answered with what holds now."""

    gain: Annotated[float, msgspec.Meta(ge=0.0, le=4.0)] | None = None
    """Linear gain on everything; a limiter keeps the peak below full scale."""
    voice: str | None = None
    """Default voice."""


class Ping(Command, tag="ping", frozen=True):
    """Answered at once."""


class Describe(Command, tag="describe", frozen=True):
    """This protocol as JSON schema."""


AnyCommand = (
    Speak
    | PlaySound
    | Append
    | Finish
    | Synthesize
    | Cancel
    | Stop
    | Pause
    | Resume
    | Skip
    | SayAgain
    | Status
    | Voices
    | Info
    | Health
    | Metrics
    | Warmup
    | Load
    | Unload
    | Forget
    | Set
    | Ping
    | Describe
)

_json = msgspec.json.Decoder(AnyCommand)
_msgpack = msgspec.msgpack.Decoder(AnyCommand)
_json_out = msgspec.json.Encoder()
_msgpack_out = msgspec.msgpack.Encoder()

# First bytes of a msgpack map: fixmap, map16, map32. None of the fixmap bytes can begin UTF-8 text;
# 0xde and 0xdf can (U+0780 to U+07FF), so those are text if they don't decode.
_FIXMAP = range(0x80, 0x90)
_MAP16_MAP32 = (0xDE, 0xDF)


def decode(frame: bytes) -> tuple[AnyCommand, Encoding]:
    """Read one command.

    Args:
        frame: the body of the message.

    Returns:
        The command and the encoding to answer in.

    Raises:
        ProtocolError: `bad_request`, naming the field where one is to blame.
    """
    encoding = encoding_of(frame)
    try:
        if encoding == "json":
            return _decode_json(frame), encoding
        if encoding == "msgpack":
            return _msgpack.decode(frame), encoding
        return Speak(text=frame.decode("utf-8")), encoding
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `")
        if not path:  # unknown and missing fields are named in the message itself
            parts = message.split("`")
            field = parts[-2] if "field" in message and len(parts) >= 3 else ""
        else:
            field = path.rstrip("`").removeprefix("$.").removeprefix("$")
        place = path.rstrip("`").removeprefix("$.")
        told = explain(message, place, get_args(AnyCommand))
        raise ProtocolError("bad_request", told, field) from None
    except msgspec.DecodeError as error:
        raise ProtocolError(
            "bad_request", f"the message is not valid {encoding}: {error}"
        ) from None
    except UnicodeDecodeError:
        raise ProtocolError(
            "bad_request", "the message is neither a JSON object, a msgpack map nor UTF-8 text"
        ) from None
    except RecursionError:
        raise ProtocolError("bad_request", "the message is nested too deeply") from None


def _decode_json(frame: bytes) -> AnyCommand:
    try:
        return _json.decode(frame)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # A client may have cut a text in the middle of a character: JSON allows the escape of one
        # half, msgspec does not.
        if b"\\ud" not in frame.lower():
            raise
        try:
            tree = json.loads(frame)
        except ValueError:
            tree = None
        if tree is None:
            raise
    command: AnyCommand = msgspec.convert(tree, AnyCommand)
    if isinstance(command, Speech) and not (isinstance(command, Speak) and command.more):
        command = msgspec.structs.replace(command, text=mend(command.text))
    for name, value in msgspec.structs.asdict(command).items():
        if name != "text" and isinstance(value, str) and value != mend(value):
            raise ProtocolError("bad_request", f"{name} holds half a character", name)
    return command


def encoding_of(frame: bytes) -> Encoding:
    """Tell how a frame is encoded; text where it is neither a JSON object nor a msgpack map."""
    if frame.lstrip(b" \t\r\n")[:1] == b"{":
        return "json"
    first = frame[0] if frame else 0
    if first in _FIXMAP:
        return "msgpack"
    if first in _MAP16_MAP32:
        try:
            msgspec.msgpack.decode(frame)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return "text"
        return "msgpack"
    return "text"


def encode(reply: dict[str, Any], encoding: Encoding) -> bytes:
    """Write a reply in the encoding of its command (plain text is answered in JSON)."""
    return _msgpack_out.encode(reply) if encoding == "msgpack" else _json_out.encode(reply)


def error_reply(error: ProtocolError) -> dict[str, Any]:
    """The reply that carries an error."""
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.field:
        body["field"] = error.field
    return {"ok": False, "error": body | error.extra}


def schema() -> dict[str, Any]:
    """The commands as JSON schema, for `describe`."""
    return msgspec.json.schema(AnyCommand)
