"""Configuration: defaults, `/etc/utterd/utterd.toml`, the user's file, environment, flags.

Later ones win. The environment spells `section.key` as `UTTERD_SECTION_KEY`.
"""

import difflib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from utterd.daemon.refused import explain

SYSTEM_FILE = Path("/etc/utterd/utterd.toml")
SYSTEM_RUN_DIR = Path("/run/utterd")
ROLE_RELEASE_AFTER_S = 1.0
"""Sound servers lower others as long as a stream with a role is open, not only while it sounds."""
_ROLE = "a name of letters, digits, - and _, such as Notification"
_LISTEN = "ADDRESS:PORT, such as 127.0.0.1:9464"


class ConfigError(Exception):
    """A configuration that can't be used; one line that names the place."""


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class Paths(_Section, frozen=True):
    """Where things lie; empty means the default of the user or the service."""

    run: str = ""
    """Sockets. Default: `/run/utterd` for root and the service, else `$XDG_RUNTIME_DIR/utterd`."""
    data: str = ""
    """Added voices. Default: `/var/lib/utterd` for root and the service, else
    `~/.local/share/utterd`."""
    lexicon: str = ""
    """The user's lexicon. Default: none."""
    sounds: str = ""
    """WAV and FLAC files for `play_sound`. Default: the folder `sounds` beside the voices."""


class Socket(_Section, frozen=True):
    """The sockets."""

    group: str = "utterd"
    """Group that may talk to the daemon, where it exists."""
    tcp: str = ""
    """Also listen on this address, such as `tcp://127.0.0.1:5577` (events one port above).
    Needs the two keys below."""
    curve_secret_key_file: str = ""
    """File with the server's CURVE secret key (Z85)."""
    curve_clients_dir: str = ""
    """Folder of the public keys (ZeroMQ certificates) of clients that may connect by TCP."""


class Audio(_Section, frozen=True):
    """The way to the speaker."""

    sink: Literal["device", "wav", "null"] = "device"
    """`device`; `wav`: a file, at the pace of a device; `null`: nothing, at the pace of a
    device."""
    device: str = "default"
    """`default`, or a part of the device's name that no other device has."""
    wav: str = "utterd.wav"
    """File of the `wav` sink."""
    rate: Annotated[int, msgspec.Meta(ge=0, le=384_000)] = 0
    """Hz; 0: the device's own."""
    period_ms: Annotated[float, msgspec.Meta(ge=1, le=200)] = 5.0
    """The device buffers four of them."""
    ramp_ms: Annotated[float, msgspec.Meta(ge=1, le=50)] = 5.0
    """Fade at a cancel."""
    gain: Annotated[float, msgspec.Meta(ge=0, le=4)] = 1.0
    """Linear; a limiter keeps the peak below full scale."""
    speed: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 1.0
    """How much faster than a real device `wav` and `null` run; for tests."""
    release_after_s: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 30.0
    """The device is let go after so long without sound, and opened again while the next text is
    synthesised; 0: never. Without a value: 0 with `keep_alive`, 1 with a `role`."""
    wake_ms: Annotated[float, msgspec.Meta(ge=0, le=10_000)] = 0.0
    """For sinks that swallow the first syllable (Bluetooth, HDMI): so much inaudible noise goes
    ahead of the first sound after the device was opened."""
    keep_alive: bool = False
    """The device is never let go, and plays inaudible noise (-90 dBFS) instead of silence, for
    sinks that fall asleep over silence."""
    role: Annotated[
        str, msgspec.Meta(pattern=r"^$|^[A-Za-z][A-Za-z0-9_-]{0,63}$", description=_ROLE)
    ] = ""
    """What the sound server is told that this is, so that it lowers others while the device is
    open: `Notification`, `Accessibility`, ... or what its configuration names; "": nothing."""


class Engine(_Section, frozen=True):
    """Voices and their workers."""

    voice: str = ""
    """Default voice, `NAME` or `NAME/SPEAKER`. Empty: the balanced one as measured, else `small`,
    which comes with utterd."""
    threads: Annotated[int, msgspec.Meta(ge=0, le=256)] = 0
    """Threads of the runtime; 0: by the number of cores."""
    fast: str = ""
    """Voice for `quality: fast`; empty: as `utterd voices benchmark` has measured, else the default
    voice. Likewise the next two."""
    balanced: str = ""
    high: str = ""
    emoji: Literal["name", "silent", "skip"] = "skip"
    """Say their names, leave them out, or leave them out and report them as skipped."""
    ready_timeout_s: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 120.0
    """A worker that is not warm by then is killed."""
    stall_timeout_s: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 60.0
    """A busy worker without progress for so long is killed."""


class Limits(_Section, frozen=True):
    """Limits on what clients may ask."""

    waiting: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 100
    characters: Annotated[int, msgspec.Meta(ge=1, le=48_000)] = 20_000
    """Of one text; more would not fit into one message to a worker."""
    message_bytes: Annotated[int, msgspec.Meta(ge=1024, le=1 << 30)] = 1 << 20
    """Of one command; a longer one is refused."""
    worker_rss_mb: Annotated[int, msgspec.Meta(ge=0)] = 4000
    """A worker that grows beyond it is started anew when it has nothing to do; 0: no limit.
    Likewise the next two."""
    player_rss_mb: Annotated[int, msgspec.Meta(ge=0)] = 250
    daemon_rss_mb: Annotated[int, msgspec.Meta(ge=0)] = 500
    """The daemon ends itself with status 75, for systemd to start it again, where that started
    it; else it becomes a new one in the same process."""
    stream_flush_ms: Annotated[int, msgspec.Meta(ge=10, le=86_400_000)] = 300
    """An open text that gets no token for so long is spoken as far as it has come."""
    stream_end_s: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 30.0
    """An open text that gets no token for so long is complete."""


class Cache(_Section, frozen=True):
    """What was said lately, so that it sounds at once when it is said again."""

    memory_mb: Annotated[int, msgspec.Meta(ge=0, le=65_536)] = 16
    """In each worker, and gone with it; 10 MB are 100 s of speech. 0: no text or sound is kept."""
    disk_mb: Annotated[int, msgspec.Meta(ge=0, le=1_048_576)] = 0
    """In the folder `cache` beside the voices, for all of them together: what was said twice, as
    sound that the owner of the folder can listen to. 0: nothing that was said is on disk."""
    ttl_hours: Annotated[float, msgspec.Meta(gt=0, le=87_600)] = 168.0
    """What was not said again for so long is deleted."""


class Ducking(_Section, frozen=True):
    """Shell commands that lower other sound while we speak; undone even if the daemon is killed."""

    begin: str = ""
    """Run when speech begins, such as `pactl set-sink-input-volume ...`."""
    end: str = ""
    """Run when it ends."""


class Metrics(_Section, frozen=True):
    """Metrics for a Prometheus server; `utterd top` and the command `metrics` need none of this."""

    listen: Annotated[str, msgspec.Meta(pattern=r"^$|^.+:[0-9]{1,5}$", description=_LISTEN)] = ""
    """`ADDRESS:PORT` of `GET /metrics`, such as `127.0.0.1:9464`; empty: none. As the service it
    needs the network: see systemd/examples/tcp.conf."""


class Log(_Section, frozen=True):
    """The log, on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Spoken text appears at `debug` only."""
    format: Literal["text", "json"] = "text"


class Config(_Section, frozen=True):
    """Everything that can be set."""

    paths: Paths = Paths()
    socket: Socket = Socket()
    audio: Audio = Audio()
    engine: Engine = Engine()
    limits: Limits = Limits()
    cache: Cache = Cache()
    ducking: Ducking = Ducking()
    metrics: Metrics = Metrics()
    log: Log = Log()
    tune: dict[str, Any] = {}
    """The machine under the voice; read and checked by `utterd tune`, see sysconfig/README.md."""

    @property
    def run_dir(self) -> Path:
        """Folder of the sockets."""
        return Path(self.paths.run) if self.paths.run else default_run_dir()

    @property
    def data_dir(self) -> Path:
        """Folder of the voices."""
        return Path(self.paths.data) if self.paths.data else default_data_dir()

    @property
    def sounds_dir(self) -> Path:
        """Folder of the sound icons."""
        return Path(self.paths.sounds) if self.paths.sounds else self.data_dir / "sounds"

    @property
    def cache_dir(self) -> Path:
        """Folder of what was said, where it is kept on disk."""
        return self.data_dir / "cache"

    @property
    def control(self) -> str:
        """Address of the command socket."""
        return f"ipc://{self.run_dir / 'control.sock'}"

    @property
    def events(self) -> str:
        """Address of the event socket."""
        return f"ipc://{self.run_dir / 'events.sock'}"

    @property
    def reference_file(self) -> Path:
        """Socket file at which the player publishes what it plays."""
        return self.run_dir / "reference.sock"

    @property
    def reference(self) -> str:
        """Address of it."""
        return f"ipc://{self.reference_file}"


def default_run_dir() -> Path:
    """`/run/utterd` for root and where systemd made it, else a folder of the user."""
    if os.geteuid() == 0 or os.access(SYSTEM_RUN_DIR, os.W_OK):
        return SYSTEM_RUN_DIR
    base = os.environ.get("XDG_RUNTIME_DIR") or f"{tempfile.gettempdir()}/user-{os.geteuid()}"
    return Path(base) / "utterd"


def default_data_dir() -> Path:
    """`/var/lib/utterd` for root and the service, else a folder of the user."""
    if state := os.environ.get("STATE_DIRECTORY"):
        return Path(state.partition(":")[0])
    system = Path("/var/lib/utterd")
    if os.geteuid() == 0 or os.access(system, os.W_OK):
        return system
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "utterd"


def user_file() -> Path:
    """The user's configuration file."""
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "utterd" / "utterd.toml"


def load(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Mapping[str, Any]] | None = None,
) -> Config:
    """Read and check the configuration.

    Args:
        file: read this file alone instead of the system's and the user's.
        environment: defaults to `os.environ`.
        flags: `{section: {key: value}}` from the command line.

    Raises:
        ConfigError: a file that can't be read or a value that can't be used.
    """
    environment = os.environ if environment is None else environment
    if file is None and environment.get("UTTERD_CONFIG"):
        file = Path(environment["UTTERD_CONFIG"])
    merged: dict[str, dict[str, Any]] = {}
    files = [file] if file else [f for f in (SYSTEM_FILE, user_file()) if f.exists()]
    for path in files:
        _merge(merged, _read(path))
    _merge(merged, _from_environment(environment))
    _merge(merged, flags or {})
    _settle_idle(merged.setdefault("audio", {}))
    config = _checked(merged, "the command line")  # all else has been checked
    _check_idle(config.audio)
    return config


def _read(path: Path) -> dict[str, Any]:
    try:
        tree: dict[str, Any] = msgspec.toml.decode(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: can't be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    _checked(tree, str(path))
    return tree


def _checked(tree: Mapping[str, Any], origin: str) -> Config:
    try:
        return msgspec.convert(tree, Config, strict=False)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$.")
        path = path.rstrip("`")
        place = f"{path}: " if path else ""
        raise ConfigError(f"{origin}: {place}{explain(message, path, (Config,))}") from None


def _settle_idle(audio: dict[str, Any]) -> None:
    """When the device is let go, where that is not said but follows from what is."""
    if "release_after_s" not in audio:
        if _checked({"audio": audio}, "the command line").audio.keep_alive:
            audio["release_after_s"] = 0.0
        elif audio.get("role"):
            audio["release_after_s"] = ROLE_RELEASE_AFTER_S


def _check_idle(audio: Audio) -> None:
    """See that what is to happen while nothing is said goes together."""
    if audio.keep_alive and audio.release_after_s:
        raise ConfigError(
            "audio.keep_alive and audio.release_after_s contradict each other: a device is kept "
            "awake or let go; leave one of them out"
        )
    if audio.wake_ms and not audio.release_after_s and not audio.keep_alive:
        raise ConfigError(
            "audio.wake_ms does nothing for a device that stays open over silence: set "
            "audio.keep_alive = true, or audio.release_after_s above 0"
        )
    if audio.role and not audio.release_after_s:
        raise ConfigError(
            f"audio.role {audio.role!r} would lower other sound for ever, because the device is "
            "never let go: set audio.release_after_s above 0, or leave the role out"
        )


def _from_environment(environment: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    known = {
        f"UTTERD_{section.name}_{key.name}".upper(): (section.name, key.name)
        for section in msgspec.structs.fields(Config)
        if msgspec.inspect.is_struct_type(section.type)
        for key in msgspec.structs.fields(section.type)
    }
    for variable, value in environment.items():
        if variable in known:
            section_name, key_name = known[variable]
            _checked({section_name: {key_name: value}}, variable)
            found.setdefault(section_name, {})[key_name] = value
        elif variable.startswith("UTTERD_"):
            _check_spelling(variable, known)
    return found


def _check_spelling(variable: str, known: Mapping[str, object]) -> None:
    """Refuse a variable that is meant for us and names nothing; other programs have theirs."""
    sections = {f"UTTERD_{field.name}_".upper() for field in msgspec.structs.fields(Config)}
    near = difflib.get_close_matches(variable, known, n=1, cutoff=_LIKE)
    if near:
        raise ConfigError(f"{variable}: nothing has this name; is {near[0]} meant?")
    if any(variable.startswith(section) for section in sections):
        raise ConfigError(
            f"{variable}: nothing has this name; `utterd config` prints every section and key, "
            "and UTTERD_SECTION_KEY sets one"
        )


_LIKE = 0.85
"""How much a variable is like one of ours that it is taken for a misspelt one; 1: the same."""


def _merge(into: dict[str, dict[str, Any]], tree: Mapping[str, Mapping[str, Any]]) -> None:
    for section, values in tree.items():
        into.setdefault(section, {}).update(values)
