import pytest

from tests.sysconfig import machines
from utterd.sysconfig.config import PROFILES, Config, ConfigError
from utterd.sysconfig.devices import devices, interrupts, node, port, sound_cards
from utterd.sysconfig.placement import place
from utterd.sysconfig.sysfs import Sysfs

CPU = "/sys/devices/system/cpu"
CAR, KIOSK = (Config(PROFILES[name]) for name in ("car", "kiosk"))


def fs(tmp_path, **kind):
    return Sysfs(machines.build(tmp_path, **kind))


def test_the_last_four_cores_are_the_voice_and_the_very_last_is_for_sound(tmp_path):
    placed = place(fs(tmp_path), CAR)
    assert placed.voice == {4, 5, 6, 7}
    assert placed.audio == {7}
    assert placed.workers == {4, 5, 6}
    assert placed.others == {0, 1, 2, 3, 4, 5, 6}


def test_two_cores_are_shared_by_all(tmp_path):
    placed = place(fs(tmp_path, cores=2), CAR)
    assert placed.audio == placed.workers == placed.voice == {0, 1}
    assert not placed.isolated
    assert placed.others == {0, 1}


def test_a_profile_without_isolation_shares(tmp_path):
    assert not place(fs(tmp_path), KIOSK).isolated


def test_the_fastest_cores_come_first(tmp_path):
    machine = fs(tmp_path)
    put = machines._Tree(tmp_path)
    for cpu in range(8):
        put(f"{CPU}/cpu{cpu}/cpufreq/cpuinfo_max_freq".lstrip("/"), "4000000" if cpu < 4 else "2")
    assert place(machine, CAR).voice == {0, 1, 2, 3}


def test_a_hyperthread_sibling_goes_with_the_audio_core(tmp_path):
    machine = fs(tmp_path)
    machine.write(f"{CPU}/cpu7/topology/thread_siblings_list", "6-7")
    placed = place(machine, CAR)
    assert placed.audio == {6, 7}
    assert placed.workers == {4, 5}


def test_cores_by_configuration(tmp_path):
    config = Config(PROFILES["car"], frozenset({1, 2}))
    assert place(fs(tmp_path), config).audio == {2}


def test_cores_that_are_not_online_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="8-9 not online; 0-7 are"):
        place(fs(tmp_path), Config(PROFILES["car"], frozenset({7, 8, 9})))


def test_offline_cores_are_left_out(tmp_path):
    machine = fs(tmp_path)
    machine.write(f"{CPU}/online", "0-5")
    assert place(machine, CAR).voice == {2, 3, 4, 5}


def test_the_node_of_the_device_decides(tmp_path):
    machine = fs(tmp_path, cores=16, nodes=2)
    machine.write("/sys/bus/pci/devices/0000:00:1f.3/numa_node", "0")
    placed = place(machine, CAR)
    assert (placed.node, placed.voice) == (0, {4, 5, 6, 7})


def test_no_node_is_normal(tmp_path):
    machine = fs(tmp_path, nodes=2, gpu=False)
    machine.write("/sys/bus/pci/devices/0000:00:1f.3/numa_node", "-1")
    assert place(machine, CAR).node == -1


def test_a_node_without_memory_is_no_node(tmp_path):
    machine = fs(tmp_path, nodes=2, gpu=False)
    machine.write("/sys/devices/system/node/has_memory", "0")
    assert place(machine, CAR).node == -1


def test_no_machine_at_all(tmp_path):
    with pytest.raises(ConfigError, match="is no machine"):
        place(Sysfs(tmp_path), CAR)


def test_a_usb_card_is_found_by_its_controller(tmp_path):
    machine = fs(tmp_path, sound=False, gpu=False)
    put = machines._Tree(tmp_path)
    controller = "sys/devices/pci0000:00/0000:00:14.0"
    card = f"{controller}/usb1/1-2/1-2:1.0/sound/card1"
    put(f"{controller}/msi_irqs/55", "msi")
    put(f"{card}/id", "Speaker")
    put.link(f"{card}/device", f"{controller}/usb1/1-2/1-2:1.0")
    put.link("sys/class/sound/card1", card)
    put.link("sys/bus/pci/devices/0000:00:14.0", controller)
    (found,) = sound_cards(machine)
    assert (found.name, found.bdf) == ("Speaker", "0000:00:14.0")
    assert interrupts(machine, found) == [55]
    assert node(machine, found) == -1


def test_one_card_can_be_chosen(tmp_path):
    machine = fs(tmp_path)
    assert [d.name for d in devices(machine, Config(sound="PCH"))] == ["PCH", "NVIDIA"]
    assert [d.kind for d in devices(machine, Config(sound="HDMI"))] == ["gpu"]
    assert sound_cards(machine, "0000:01:00.0")[0].bdf == "0000:01:00.0"


def test_the_port_above_a_card(tmp_path):
    machine = fs(tmp_path)
    sound, gpu = devices(machine, CAR)
    assert port(machine, gpu).endswith("0000:00:01.0")
    assert port(machine, sound) == ""


def test_no_sound_card_and_no_gpu(tmp_path):
    assert devices(fs(tmp_path, sound=False, gpu=False), CAR) == []
