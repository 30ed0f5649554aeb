"""What a guest tells is read whatever others print on its console."""

from tests import guests

FIRST = '{"case": "case_first", "error": "", "seconds": 1.0}'
SECOND = '{"case": "case_second", "error": "it failed", "seconds": 0.5}'


def test_lines_are_found_behind_and_before_other_output() -> None:
    output = f"[  OK  ] Started.CASE {FIRST}[ 1.2] kernel\nCASE {SECOND}\n"
    assert set(guests.results(output)) == {"case_first", "case_second"}


def test_a_line_that_others_wrote_into_is_read_from_its_second_time() -> None:
    output = f"CASE {FIRST[:20]}[  OK  ]\n{FIRST[20:]}\nCASE {SECOND}\n\nCASE {FIRST}\n"
    found = guests.results(output)
    assert found["case_first"]["error"] == ""
    assert found["case_second"]["error"] == "it failed"


def test_every_case_is_told_twice(capsys) -> None:
    def fails() -> None:
        raise ValueError("no")

    guests.run({"case_good": lambda: None, "other": fails, "case_bad": fails})
    output = capsys.readouterr().out
    assert output.count("CASE") == 4
    for part in (output, output.partition("\n\n")[2]):
        found = guests.results(part)
        assert found["case_good"]["error"] == ""
        assert "ValueError" in found["case_bad"]["error"]
