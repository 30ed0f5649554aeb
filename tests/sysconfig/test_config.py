import pytest

from tests.sysconfig import machines
from utterd.sysconfig.config import PROFILES, Config, ConfigError, Profile, load
from utterd.sysconfig.knob import Machine
from utterd.sysconfig.plan import plan
from utterd.sysconfig.sysfs import Sysfs


def write(tmp_path, text):
    file = tmp_path / "utterd.toml"
    file.write_text(text)
    return file


def test_a_profile_and_its_cores(tmp_path):
    config = load(write(tmp_path, '[tune]\nprofile = "car"\ncores = "2-3"\nsound = "PCH"\n'))
    assert config == Config(PROFILES["car"], frozenset({2, 3}), "PCH")


def test_other_tables_are_not_ours(tmp_path):
    assert load(write(tmp_path, '[audio]\ndevice = "x"\n')).profile.name == "desktop"


def test_the_command_line_counts_more(tmp_path):
    assert load(write(tmp_path, '[tune]\nprofile = "car"\n'), "kiosk").profile.name == "kiosk"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[tune]\nprofile = "rocket"', "car, benchmark|desktop, kiosk"),
        ('[tune]\nspeed = "high"', "knows no 'speed'"),
        ('[tune]\ncores = "x"', "0-2,5"),
        ("[tune]\ncores = 3", "takes text"),
        ("tune = 3", "must be a table"),
        ("[tune", "no TOML"),
    ],
)
def test_a_bad_file_is_named_with_what_to_write(tmp_path, text, words):
    with pytest.raises(ConfigError, match=words):
        load(write(tmp_path, text))


def test_a_named_file_must_exist(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        load(tmp_path / "none.toml")


def test_the_desktop_changes_nothing(tmp_path):
    root = machines.build(tmp_path, buffers=1)
    due = plan(Machine(Sysfs(root)), Config(PROFILES["desktop"]))
    assert (due.changes, due.notes) == ([], [])


def test_stronger_profiles_do_more(tmp_path):
    root = machines.build(tmp_path, buffers=1)
    counts = {
        name: len(plan(Machine(Sysfs(root)), Config(PROFILES[name])).changes)
        for name in ("desktop", "kiosk", "car", "benchmark")
    }
    assert list(counts.values()) == sorted(set(counts.values())), counts


def test_an_empty_profile_is_the_desktop():
    assert Profile("desktop") == PROFILES["desktop"]
