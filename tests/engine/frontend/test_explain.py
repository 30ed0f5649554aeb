import io
import json
import subprocess
import sys

import pytest

from utterd.engine.frontend import explain


def test_json_has_exactly_the_keys(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("一条路\n\nQQ和T恤😀\n"))
    assert explain.main(["--json", "-"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["text"] for row in rows] == ["一条路", "", "QQ和T恤😀"]
    for row in rows:
        assert list(row) == ["text", "normalized", "syllables", "phonemes", "segments", "skipped"]
    assert rows[0]["syllables"][0] == {
        "text": "一", "pinyin": "yi1", "spoken": "yi4", "start": 0, "end": 1
    }  # fmt: skip
    assert [s["text"] for s in rows[2]["syllables"]] == ["和", "恤"]
    assert rows[2]["skipped"][0]["text"] == "😀"


def test_table_shows_each_stage(capsys):
    assert explain.main(["一条长长的路，重3kg"]) == 0
    out = capsys.readouterr().out
    for part in ("一条长长的路，重三千克", "yi1 tiao2 chang2", "yi4*", "ꭧʊ↘ŋ", "pause 160 ms"):
        assert part in out


def test_options(capsys, tmp_path):
    lexicon = tmp_path / "lexicon.txt"
    lexicon.write_text("行\thang2\n坏\n", "utf-8")
    assert explain.main(["--emoji", "name", "--lexicon", str(lexicon), "行👍"]) == 0
    captured = capsys.readouterr()
    assert "hang2" in captured.out
    assert "点赞" in captured.out
    assert ":2:" in captured.err
    assert explain.main(["--language", "en", "5 of 10"]) == 0
    assert "five of ten" in capsys.readouterr().out


def test_bad_markup_is_one_line_and_exit_1(capsys):
    assert explain.main(["--ssml", "<speak>你好"]) == 1
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("utterd explain: line 1, column")


def test_ssml_with_marks_and_prosody(capsys):
    assert (
        explain.main(
            ["--ssml", '<speak><prosody rate="slow"><mark name="m"/>你好</prosody></speak>']
        )
        == 0
    )
    out = capsys.readouterr().out
    assert "m@0" in out
    assert "rate 0.75" in out


def test_lone_surrogates_print(capsys):
    assert explain.main(["你\ud800好"]) == 0
    assert "cannot be spoken" in capsys.readouterr().out


def test_wrong_use_exits_2():
    with pytest.raises(SystemExit) as caught:
        explain.main([])
    assert caught.value.code == 2


def test_runs_as_a_module_without_heavy_imports():
    code = (
        "import sys, utterd.engine.frontend.explain as e; e.main(['你好']); "
        "bad = {'torch', 'jieba', 'spacy', 'misaki', 'onnxruntime', 'wetext'} & set(sys.modules); "
        "print(bad); sys.exit(len(bad))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "ni2* hao3" in done.stdout


def test_bytes_that_are_no_text_and_a_reader_that_leaves():
    code = "import sys, utterd.engine.frontend.explain as e; sys.exit(e.main(['--json', '-']))"
    text = b"\xff\xfe\n" + "你好\n".encode() * 2000
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        first = process.communicate(text[:10])[0]
        assert process.returncode == 0
        assert len(first.splitlines()) == 2
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -c "{code}" | head -1 >/dev/null'],
        input=text, capture_output=True, check=False,
    )  # fmt: skip
    assert done.stderr == b""
