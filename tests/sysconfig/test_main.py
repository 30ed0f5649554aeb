"""The command line on a made-up machine."""

import json

import pytest

from tests.sysconfig import machines
from utterd.sysconfig.main import main


@pytest.fixture
def run(tmp_path, capsys):
    root = machines.build(tmp_path / "root", cores=2)

    def run(command, *words, profile="kiosk"):
        arguments = [command, "--root", str(root), "--journal", str(tmp_path / "journal")]
        if command in ("plan", "apply", "verify"):
            arguments += ["--profile", profile]
        code = main([*arguments, *words])
        return code, capsys.readouterr()

    run.root = root
    run.journal = tmp_path / "journal"
    return run


def test_a_table_for_people(run):
    before = machines.snapshot(run.root)
    code, shown = run("plan")
    assert code == 0
    assert shown.out.splitlines()[0].split() == ["KNOB", "SETTING", "NOW", "THEN", "WHY"]
    assert "pm_qos_resume_latency_us" in shown.out
    assert machines.snapshot(run.root) == before
    assert not run.journal.exists(), "a plan needs no journal"


def test_all_commands_in_json(run):
    before = machines.snapshot(run.root)
    due = json.loads(run("plan", "--json")[1].out)["changes"]
    code, shown = run("apply", "--json")
    assert code == 0
    results = json.loads(shown.out)["results"]
    assert [r["change"]["path"] for r in results] == [c["path"] for c in due]
    assert {r["outcome"] for r in results} == {"applied"}
    code, shown = run("verify", "--json")
    states = {s["state"] for s in json.loads(shown.out)["settings"]}
    assert code == 0
    assert states <= {"ok", "pending", "unsupported"}
    assert len(json.loads(run("status", "--json")[1].out)["applied"]["entries"]) == len(due)
    assert run("restore", "--json")[0] == 0
    assert json.loads(run("status", "--json")[1].out) == {"applied": None}
    assert machines.snapshot(run.root) == before


def test_drift_is_exit_code_1(run):
    run("apply")
    path = run.root / "sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us"
    path.write_text("500\n")
    code, shown = run("verify")
    assert code == 1
    assert "drifted" in shown.out
    code, shown = run("restore")
    assert code == 0
    assert "changed by another" in shown.out


def test_status_for_people(run):
    assert "nothing is applied" in run("status")[1].out
    run("apply")
    assert "kiosk cores= sound=: applied" in run("status")[1].out


def test_latency_before_and_after_is_kept_until_restored(run):
    run("apply", "--measure", "0.05")
    figures = json.loads((run.journal / "latency.json").read_text())
    assert figures["before"]["count"] == figures["after"]["count"] == 50
    run("restore")
    assert not (run.journal / "latency.json").exists()


def test_the_desktop_profile_does_nothing(run):
    code, shown = run("apply", profile="desktop")
    assert (code, shown.out) == (0, "nothing to do\n")


def test_errors_are_one_line_and_exit_code_2(run):
    code, shown = run("plan", profile="rocket")
    assert code == 2
    assert shown.err.startswith("utterd-tune: there is no profile 'rocket'")
    assert shown.err.count("\n") == 1


def test_help_of_every_command(capsys):
    for command in ("plan", "apply", "verify", "status", "restore"):
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0
    assert "--journal" in capsys.readouterr().out
