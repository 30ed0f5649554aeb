"""Rights: groups, limits for real time and locked memory, sockets that others may use."""

import grp
import os
import pwd
import resource
import stat
from collections.abc import Iterator

from utterd.sysconfig.check import Finding, Scene, broken, fine, warning

RT_PRIORITY = 10
MEMLOCK = 64 << 20


def user() -> str:
    """Name of the user this runs as."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def groups(scene: Scene) -> Iterator[Finding]:
    """May this user open the sound devices?"""
    devices = scene.fs.match("/dev/snd", "pcm*p")
    shut = [path for path in devices if not os.access(scene.fs.at(path), os.R_OK | os.W_OK)]
    if shut:
        why = "without it only a sound server can play for this user"
        mend = f"usermod -aG audio {user()}, then log in again"
        yield warning("group audio", f"{user()} may not open {shut[0]}", why, mend)
    elif devices:
        yield fine("group audio", f"{user()} may open {len(devices)} playback devices")


def limits(scene: Scene) -> Iterator[Finding]:
    """What this user's processes may ask for (the service has limits of its own)."""
    service = "the service has LimitRTPRIO= and LimitMEMLOCK= of its own"
    line = f"{user()} - rtprio 95, {user()} - memlock unlimited"
    mend = f"/etc/security/limits.d/utterd.conf: {line}; {service}"
    priority = resource.getrlimit(resource.RLIMIT_RTPRIO)[0]
    if os.geteuid() == 0 or priority == resource.RLIM_INFINITY or priority >= RT_PRIORITY:
        yield fine("real-time limit", "root" if os.geteuid() == 0 else str(priority))
    else:
        why = "under load the audio thread waits behind others: crackles"
        yield warning("real-time limit", f"{priority} for {user()}", why, mend)
    memory = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    if os.geteuid() == 0 or memory in (resource.RLIM_INFINITY, -1) or memory >= MEMLOCK:
        yield fine("locked memory limit", "enough")
    else:
        why = "memory of the audio path may be paged out: a pause of milliseconds"
        yield warning("locked memory limit", f"{memory >> 10} KiB", why, mend)
    if scene.fs.exists("/sys/fs/cgroup/cpu/cpu.rt_runtime_us"):
        text = "real-time groups (RT_GROUP_SCHED) are on"
        why = "SCHED_FIFO is refused in every service"
        yield warning("real-time groups", text, why, "boot with systemd.unified_cgroup_hierarchy=1")


def sockets(scene: Scene) -> Iterator[Finding]:
    """Sockets of the daemon: of group utterd, closed to everyone else."""
    path = scene.run / "control.sock"
    try:
        status = path.stat()
    except FileNotFoundError:
        mend = "systemctl start utterd"
        yield warning("socket", f"no {path}", "no daemon runs here: nothing can speak", mend)
        return
    except PermissionError:
        mend = f"usermod -aG utterd {user()}, then log in again"
        yield broken("socket", f"{user()} may not enter {scene.run}", "no client can speak", mend)
        return
    mode, group = stat.S_IMODE(status.st_mode), _group(status.st_gid)
    found = f"{path} {mode:04o}, group {group}"
    if mode & 0o007:
        mend = f"chmod 0660 {path}, or remove what changes the umask"
        yield warning("socket", found, "every user of the machine can make it speak", mend)
    elif not os.access(path, os.R_OK | os.W_OK):
        mend = f"usermod -aG {group} {user()}, then log in again"
        yield broken(
            "socket", f"{found}: not for {user()}", "this user's clients can't speak", mend
        )
    else:
        yield fine("socket", found)


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
