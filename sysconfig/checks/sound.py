"""Sound: a card, its rates, who holds it, and a sound server that this user can reach."""

import re
import socket
from collections.abc import Iterator

from utterd.sysconfig.check import Finding, Scene, broken, fine, warning
from utterd.sysconfig.sysfs import Sysfs

RATE = 48_000
_SERVERS = {"PipeWire": "pipewire-0", "PulseAudio": "pulse/native"}
_SYSTEM_SERVERS = {"PipeWire": "/run/pipewire/pipewire-0", "PulseAudio": "/run/pulse/native"}


def cards(scene: Scene) -> Iterator[Finding]:
    """A card that can play, or a server that stands in for one."""
    found = [path for path in scene.fs.match("/proc/asound", "card*") if path[-1].isdigit()]
    names = [scene.fs.get(f"{path}/id") for path in found if _plays(scene.fs, path)]
    if names:
        yield fine("sound card", ", ".join(names))
        for path in found:
            yield from _rates(scene.fs, path)
        return
    text = "none that plays" if found else "none"
    mend = "connect one, or load its driver (lspci -k, lsusb, dmesg | grep -i snd)"
    if _reachable(scene):
        yield warning("sound card", text, "sound goes only where the sound server sends it", mend)
    else:
        yield broken("sound card", text, "there is nothing to speak through", mend)


def holders(scene: Scene) -> Iterator[Finding]:
    """Programs that have a playback device open: most cards take one at a time."""
    held = []
    for path in scene.fs.match("/proc/asound", "card*"):
        for stream in scene.fs.match(path, "pcm*p"):
            for part in scene.fs.match(stream, "sub*"):
                owner = re.search(r"owner_pid\s*:\s*(\d+)", scene.fs.get(f"{part}/status"))
                if owner:
                    held.append((stream.removeprefix("/proc/asound/"), owner.group(1)))
    held += _descriptors(scene.fs, {pid for _, pid in held})
    for device, pid in held:
        name = scene.fs.get(f"/proc/{pid}/comm", "?")
        text = f"{name} (process {pid}) has {device} open"
        if name.startswith(("utterd", "pipewire", "pulseaudio", "wireplumber", "python")):
            yield fine("sound device", text)
        else:
            why = "a card that is open elsewhere answers 'busy' to utterd"
            yield warning("sound device", text, why, f"end it: kill {pid}")
    if not held:
        yield fine("sound device", "free")


def server(scene: Scene) -> Iterator[Finding]:
    """Sound servers of this user and of the system."""
    paths = _sockets(scene)
    if not paths:
        yield fine("sound server", "none; utterd opens the card itself")
    for name, path in paths.items():
        if problem := _knock(scene.fs.at(path)):
            mend = "run as the user that owns it (systemctl --user enable --now utterd)"
            why = "a server that holds the card and refuses utterd leaves it silent"
            yield warning("sound server", f"{name} at {path}: {problem}", why, mend)
        else:
            yield fine("sound server", f"{name} answers at {path}")


def _plays(fs: Sysfs, card: str) -> bool:
    return bool(fs.match(card, "pcm*p"))


def _rates(fs: Sysfs, card: str) -> Iterator[Finding]:
    """Rates as the codec or the USB descriptor tells them; other drivers do not."""
    for path in [*fs.match(card, "codec#*"), *fs.match(card, "stream*")]:
        lines = re.findall(
            r"^\s*rates?\b[^:]*:\s*(.+)$", fs.get(path), re.MULTILINE | re.IGNORECASE
        )
        rates = sorted({int(rate) for line in lines for rate in re.findall(r"\d{4,6}", line)})
        if not rates:
            continue
        name = f"rates of {fs.get(f'{card}/id')}"
        text = f"{', '.join(map(str, rates))} Hz"
        if RATE in rates:
            yield fine(name, text)
        else:
            why = "the player resamples to what the card takes, at some cost"
            yield warning(name, text, why, f"set audio.rate = {rates[-1]} in utterd.toml")


def _descriptors(fs: Sysfs, known: set[str]) -> list[tuple[str, str]]:
    """Open playback devices by descriptor, where we may look (root sees all)."""
    found = []
    for pid in (name for name in fs.names("/proc") if name.isdigit() and name not in known):
        links = {fs.link(path) for path in fs.match(f"/proc/{pid}/fd", "*")}
        found += [(at, pid) for at in sorted(links) if re.fullmatch(r"/dev/snd/pcmC\d+D\d+p", at)]
    return found


def _sockets(scene: Scene) -> dict[str, str]:
    paths = dict(_SYSTEM_SERVERS)
    if scene.runtime_dir:
        paths |= {name: f"{scene.runtime_dir}/{at}" for name, at in _SERVERS.items()}
    return {name: path for name, path in paths.items() if scene.fs.exists(path)}


def _reachable(scene: Scene) -> bool:
    return any(not _knock(scene.fs.at(path)) for path in _sockets(scene).values())


def _knock(path: str) -> str:
    """Connect and hang up; say what went wrong, empty if nothing did."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(1)
        try:
            link.connect(path)
        except OSError as error:
            return error.strerror or str(error)
    return ""
