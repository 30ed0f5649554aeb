"""`utterd doctor`: the machine's checks, and those that only the daemon's rooms can make."""

from collections.abc import Iterator, Sequence

from utterd.audio.devices import list_devices
from utterd.audio.sink import SinkError
from utterd.daemon.client import Client, DaemonError
from utterd.daemon.config import Config, ConfigError, load
from utterd.engine.voices import install
from utterd.engine.voices.package import BUILT_IN, VoiceError
from utterd.sysconfig.check import Finding, Scene, broken, fine, warning
from utterd.sysconfig.doctor import main


def doctor(arguments: Sequence[str]) -> int:
    """Run all checks and print the table; see `utterd doctor --help`."""
    try:
        config = load()
    except ConfigError as error:
        text = str(error)

        def configuration(_: Scene) -> Iterator[Finding]:
            yield broken("configuration", text, "the daemon does not start", "mend what it names")

        return main(arguments, [configuration, voices])
    places = ["--data", str(config.data_dir), "--run", str(config.run_dir)]
    return main([*places, *arguments], [voices, devices, lambda _: daemon(config)])


def voices(scene: Scene) -> Iterator[Finding]:
    """Every file of every voice against the size and checksum in its manifest."""
    for one in install.list_voices(scene.data):
        problem = one.problem
        if one.package is not None:
            try:
                one.package.verify()
            except VoiceError as error:
                problem = str(error)
        if problem:
            mend = f"utterd voices remove {one.name} && utterd voices add {one.name}"
            if one.folder == BUILT_IN:
                mend = "pip install --force-reinstall utterd"
            elif one.name == BUILT_IN.name:  # the name of somebody else's package on PyPI
                mend = f"utterd voices remove {one.name}"
            yield broken(f"voice {one.name}", problem, "it won't load, or speaks nonsense", mend)
        else:
            yield fine(f"voice {one.name}", "every file is as its manifest says")


def devices(_: Scene) -> Iterator[Finding]:
    """What PortAudio can play through, with the rates."""
    try:
        found = list_devices()
    except SinkError as error:
        yield broken("devices", str(error), "nothing can be heard", "install libportaudio2")
        return
    if not found:
        yield broken(
            "devices",
            "PortAudio sees no output device",
            "nothing can be heard",
            "plug one in, or give this user access: adduser USER audio",
        )
        return
    yield fine("devices", "; ".join(map(str, found)))


def daemon(config: Config) -> Iterator[Finding]:
    """What a running daemon says of itself."""
    with Client(config, starting_s=0.0) as client:
        try:
            health = client.call("health", timeout_s=1.0)
        except DaemonError as error:
            yield warning(
                "daemon", str(error), "nothing speaks", "systemctl start utterd, or utterd serve"
            )
            return
    if not health["audible"]:
        yield broken(
            "daemon", "; ".join(health["problems"]), "nothing can be heard now", "utterd status"
        )
        return
    device = health["device"]
    runtimes = ", ".join(f"{v['name']} on {v['runtime']}" for v in health["voices"])
    yield fine("daemon", f"heard through {device['name']} at {device['rate']} Hz; {runtimes}")
    if not device["realtime"]:
        yield warning(
            "real time",
            "the audio thread has no SCHED_FIFO",
            "a busy machine can make sound stutter",
            "run it as the service, or raise the rtprio limit of this user",
        )
