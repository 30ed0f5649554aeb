"""Cases that run under a real systemd, as root, with the container's own Python.

utterd is installed as `make install` lays it out; its speaker is the null sink.
"""

import grp
import json
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests import guests

UNIT = "utterd.service"
CONTROL = Path("/run/utterd/control.sock")


def case_users_and_folders_are_made() -> None:
    """sysusers and tmpfiles, as install runs them."""
    run("systemd-sysusers")
    run("systemd-tmpfiles", "--create")
    run("systemctl", "daemon-reload")
    assert pwd.getpwnam("utterd").pw_uid < 1000
    assert "utterd" in grp.getgrnam("audio").gr_mem
    assert Path("/var/lib/utterd").owner() == "utterd"


def case_the_tuner_starts_and_stops() -> None:
    """Hardened as it is, it runs, reports and restores. (A container's /sys is read-only.)"""
    run("systemctl", "start", "utterd-tune.service")
    assert show("ActiveState", "utterd-tune.service") == "active"
    log = run("journalctl", "--no-pager", "--output=cat", "--unit=utterd-tune.service")
    assert "idle" in log, log
    assert "EROFS" in log, log
    assert Path("/run/utterd-tune/latency.json").exists(), log
    run("systemctl", "stop", "utterd-tune.service")
    assert show("ActiveState", "utterd-tune.service") == "inactive"
    assert show("Result", "utterd-tune.service") == "success"


def case_it_becomes_ready() -> None:
    """`start` returns when the daemon has said READY, with the voice warm."""
    run("systemctl", "start", UNIT)
    assert show("ActiveState") == "active"
    assert show("StatusText") == "ready"
    assert show("NRestarts") == "0"
    assert Path(f"/proc/{main_pid()}").owner() == "utterd"


def case_sockets_are_for_the_group_alone() -> None:
    """0660 and of group utterd; a stranger is turned away, a member speaks."""
    status = CONTROL.stat()
    assert stat.S_IMODE(status.st_mode) == 0o660, oct(status.st_mode)
    assert grp.getgrgid(status.st_gid).gr_name == "utterd"
    run("useradd", "--no-create-home", "stranger")
    run("useradd", "--no-create-home", "--groups", "utterd", "member")
    assert say("stranger").returncode != 0
    assert spoken_by("member")


def case_the_log_has_no_text_and_names_the_utterance() -> None:
    """Who was heard can be traced by id; what was said can't."""
    utterance = spoken_by("member")
    log = run("journalctl", "--no-pager", "--output=cat", f"--unit={UNIT}")
    assert "ready" in log, log
    assert "nobody" not in log, log
    assert utterance in log, log


def case_real_time_is_as_health_says() -> None:
    """Whether the audio thread runs as SCHED_FIFO is what the daemon reports."""
    told = json.loads(run("/usr/local/bin/utterd", "status", "--json", check=False))
    tids = [int(at.name) for pid in processes() for at in Path(f"/proc/{pid}/task").iterdir()]
    policies = {os.sched_getscheduler(tid) & ~os.SCHED_RESET_ON_FORK for tid in tids}
    assert told["health"]["device"]["realtime"] == (os.SCHED_FIFO in policies), (told, policies)


def case_the_live_unit_is_hardened() -> None:
    """As systemd itself sees the loaded units."""
    for unit, threshold in ((UNIT, "15"), ("utterd-tune.service", "20")):
        run("systemd-analyze", "security", f"--threshold={threshold}", unit)


def case_frozen_it_is_killed_by_the_watchdog_and_comes_back() -> None:
    """SIGSTOP: no sign of life, so systemd kills it and starts another one."""
    frozen, before = main_pid(), int(show("NRestarts"))
    old = processes()
    os.kill(frozen, signal.SIGSTOP)
    wait_for(lambda: int(show("NRestarts")) > before and show("ActiveState") == "active", 120)
    assert main_pid() != frozen
    wait_for(lambda: not set(old) & set(processes()), 5)
    log = run("journalctl", "--no-pager", "--output=cat", f"--unit={UNIT}")
    assert "Watchdog timeout" in log, log
    assert spoken_by("member")


def case_killed_it_comes_back_without_orphans() -> None:
    """SIGKILL of the daemon alone: its children end by themselves, a new daemon starts."""
    killed, before = main_pid(), int(show("NRestarts"))
    old = processes()
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: int(show("NRestarts")) > before and show("ActiveState") == "active", 120)
    assert not set(old) & set(processes()), "a child outlived the daemon"
    assert spoken_by("member")


def case_grown_over_its_limit_it_is_started_anew() -> None:
    """Having nothing to do it ends with status 75: another one at once, and no failure."""
    drop_in = Path("/run/systemd/system") / f"{UNIT}.d" / "limit.conf"
    drop_in.parent.mkdir(parents=True)
    drop_in.write_text("[Service]\nEnvironment=UTTERD_LIMITS_DAEMON_RSS_MB=80\n")
    run("systemctl", "daemon-reload")
    run("systemctl", "restart", UNIT)
    time.sleep(4)  # what it has by now, it needs
    python = Path("/usr/local/bin/utterd").read_text().partition("\n")[0].removeprefix("#!")
    grow = "from tests.bloat import bloated; import time\n"
    grow += "with bloated('ipc:///run/utterd/events.sock'): time.sleep(100)"
    before = main_pid()
    with subprocess.Popen([*python.split(), "-c", grow], env=environment()) as grower:
        wait_for(lambda: main_pid() not in (0, before), 60)
        grower.kill()
    wait_for(lambda: show("ActiveState") == "active", 60)
    assert show("NRestarts") == "1"
    log = run("journalctl", "--no-pager", "--output=cat", f"--unit={UNIT}")
    assert "limits.daemon_rss_mb = 80" in log, log
    assert "Failed with result 'exit-code'" not in log, log
    assert spoken_by("member")
    shutil.rmtree(drop_in.parent)
    run("systemctl", "daemon-reload")


def case_stopped_it_leaves_nothing() -> None:
    """No process, no socket; state stays."""
    run("systemctl", "stop", UNIT)
    assert show("Result") == "success"
    assert processes() == []
    assert not CONTROL.exists()
    assert Path("/var/lib/utterd").exists()


def case_a_user_runs_one_of_his_own() -> None:
    """The user unit, in a user manager, with sockets that are his alone."""
    uid = pwd.getpwnam("member").pw_uid
    run("systemctl", "start", f"user@{uid}.service")
    manager = ("runuser", "-u", "member", "--", "env", f"XDG_RUNTIME_DIR=/run/user/{uid}")
    manager += ("systemctl", "--user")
    run(*manager, "start", UNIT)
    sockets = Path(f"/run/user/{uid}/utterd")
    assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
    run(*manager, "stop", UNIT)
    assert not sockets.exists()
    run("systemctl", "stop", f"user@{uid}.service")


def case_uninstalled_it_leaves_nothing() -> None:
    """Programs, units, user, group, state: what install and the service made is gone."""
    run("systemctl", "enable", "--now", "utterd-tune.service", UNIT)
    Path("/etc/utterd/mine.toml").touch()
    shown = run("sh", "/install.sh", "uninstall")
    assert "kept: /etc/utterd" in shown, shown
    assert "utterd" not in [entry.pw_name for entry in pwd.getpwall()]
    assert "utterd" not in [entry.gr_name for entry in grp.getgrall()]
    left = run("find", "/usr/local", "/etc/systemd", "/var", "/run", "-xdev", "-name", "*utterd*")
    assert left.split() == [], left


def say(user: str) -> subprocess.CompletedProcess[str]:
    """Speak as a user, with a text that must not reach the log."""
    words = ["/usr/local/bin/utterd", "say", "--run-dir", "/run/utterd", "--json"]
    words.append("nobody may read this")
    return subprocess.run(
        ["runuser", "-u", user, "--", *words], capture_output=True, text=True, check=False
    )


def spoken_by(user: str) -> str:
    """Speak as a user who may; the utterance's id."""
    done = say(user)
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[-1]["event"] == "ended", events
    return str(events[-1]["id"])


def run(*command: str, check: bool = True) -> str:
    """Run a program; its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if check and done.returncode:
        state = subprocess.run(
            ["journalctl", "--no-pager", "--lines=40"], capture_output=True, text=True, check=False
        )
        raise AssertionError(f"{command}: {done.stdout}{done.stderr}\n{state.stdout}")
    return done.stdout


def environment() -> dict[str, str]:
    """For a Python that shall find the tests, and the packages of the product."""
    return {**os.environ, "PYTHONPATH": ":".join(sys.path)}


def show(what: str, unit: str = UNIT) -> str:
    """One property of a unit."""
    return run("systemctl", "show", "--value", f"--property={what}", unit).strip()


def main_pid() -> int:
    """The daemon's process."""
    return int(show("MainPID"))


def processes() -> list[int]:
    """Every process that runs as utterd."""
    found = []
    for path in Path("/proc").iterdir():
        try:
            if path.name.isdigit() and path.owner() == "utterd":
                found.append(int(path.name))
        except (OSError, KeyError):
            continue
    return sorted(found)


def wait_for(ready: Callable[[], bool], seconds: float) -> None:
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise AssertionError(f"it did not come:\n{run('journalctl', '--no-pager', '-n', '40')}")
        time.sleep(0.1)


if __name__ == "__main__":
    guests.run(globals())
