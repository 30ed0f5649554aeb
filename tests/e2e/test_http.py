"""`utterd http` in front of a real daemon, asked over real HTTP."""

import asyncio
import io
import os
import signal
import socket
import threading
import time
from contextlib import contextmanager

import aiohttp
import msgspec
import numpy as np
import psutil
import pytest
import soundfile

from tests.daemon_process import DaemonProcess, listening
from tests.e2e.command import LONG, PATIENCE_S, complaint, done, finish, held, run, spawn
from utterd.daemon.bridges.formats import PCM_RATE
from utterd.daemon.bridges.link import MOST

TEXT = "Turn right."
PAGE = "http://localhost:3000"
TOKEN = "a-token-that-nobody-guesses"  # noqa: S105


class Bridge:
    """A running `utterd http`.

    Args:
        run_dir: of the daemon.
        options: behind `utterd http`.
    """

    def __init__(self, run_dir, *options):
        where = ("--run-dir", str(run_dir), "--listen", "127.0.0.1:0")
        self.process = spawn("http", *where, *options)
        self.log = b""
        while b" address=" not in self.log:
            line = self.process.stderr.readline()
            assert line, f"the bridge ended: {self.log}"
            self.log += line
        self.address = self.log.split(b" address=")[1].split()[0].decode()
        self.url = f"http://{self.address}"
        self._idle = self._sockets()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.log += line

    def ask(self, method, path, body=None, **named):
        """Status, headers and body of an answer."""

        async def go():
            timeout = aiohttp.ClientTimeout(total=PATIENCE_S)
            async with (
                aiohttp.ClientSession(self.url, timeout=timeout) as session,
                session.request(method, path, json=body, **named) as response,
            ):
                return response.status, response.headers, await response.read()

        return asyncio.run(go())

    def get(self, path, **named):
        return self.ask("GET", path, **named)

    def speech(self, **body):
        return self.ask("POST", "/v1/audio/speech", body)

    def requests(self):
        """How many connections to the daemon it holds."""
        return self._sockets() - self._idle

    def _sockets(self):
        found = psutil.Process(self.process.pid).net_connections("unix")
        return len([one for one in found if one.type == socket.SOCK_STREAM])

    def stop(self):
        try:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(PATIENCE_S) == 0, self.log
        finally:
            self.process.kill()
            self._reader.join()
            for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
                pipe.close()


@contextmanager
def bridging(*arguments):
    started = Bridge(*arguments)
    try:
        yield started
    finally:
        started.stop()
    assert b"Traceback" not in started.log, started.log


@pytest.fixture(scope="module")
def bridge(quiet_daemon):
    with bridging(quiet_daemon.run_dir, "--allow-origin", PAGE) as started:
        yield started


def error_of(answer, status):
    """The error in an answer, whose shape is OpenAI's."""
    assert answer[0] == status, answer
    assert answer[1]["Content-Type"].startswith("application/json")
    error = msgspec.json.decode(answer[2])["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    return error


def until(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S} s for {what}"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def samples(quiet_daemon):
    """What the daemon itself gives for `TEXT`, and its rate."""
    with quiet_daemon.client() as client:
        reply, data = client.call_with_samples("synthesize", timeout_s=PATIENCE_S, text=TEXT)
    return np.frombuffer(data, dtype="<i2"), reply["sample_rate"]


@pytest.mark.parametrize("format_", ["wav", "flac"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_file_holds_the_daemons_samples(bridge, samples, format_, stream):
    body = {"model": "tts-1", "input": TEXT, "voice": "joe-us", "response_format": format_}
    status, headers, data = bridge.speech(**body, stream=stream)
    assert (status, headers["Content-Type"]) == (200, f"audio/{format_}")
    chunked = headers.get("Transfer-Encoding") == "chunked"
    assert chunked == (stream and format_ == "wav") == ("Content-Length" not in headers)
    heard, rate = soundfile.read(io.BytesIO(data), dtype="int16")
    wanted, wanted_rate = samples
    assert rate == wanted_rate
    assert np.array_equal(heard, wanted)


@pytest.mark.parametrize("stream", [True, False])
def test_pcm_has_the_rate_that_openai_gives(bridge, samples, stream):
    status, headers, data = bridge.speech(input=TEXT, response_format="pcm", stream=stream)
    assert (status, headers["Content-Type"]) == (200, "audio/pcm")
    wanted, rate = samples
    assert rate != PCM_RATE
    heard = np.frombuffer(data, dtype="<i2")
    assert len(heard) == pytest.approx(len(wanted) * PCM_RATE / rate, abs=2)
    # The same sound: the strongest tones lie where they lay.
    tones = [
        np.argmax(np.abs(np.fft.rfft(one.astype(float)))) * its / len(one)
        for one, its in ((heard, PCM_RATE), (wanted, rate))
    ]
    assert tones[0] == pytest.approx(tones[1], abs=2)


def test_speed_makes_it_shorter(bridge, samples):
    _, _, data = bridge.speech(input=TEXT, speed=2, stream=False)
    heard, _ = soundfile.read(io.BytesIO(data))
    assert 0.3 < len(heard) / len(samples[0]) < 0.75


@contextmanager
def bridge_stream(bridge, text, size=4096):
    """The first bytes of an answer's body, from a client that hangs up then."""
    host, _, port = bridge.address.rpartition(":")
    body = msgspec.json.encode({"input": text})
    head = f"POST /v1/audio/speech HTTP/1.0\r\nHost: {bridge.address}\r\n"
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        file = connection.makefile("rb")
        assert b" 200 " in file.readline()
        while file.readline() != b"\r\n":
            pass
        try:
            yield file.read(size)
        finally:
            file.close()


def test_a_client_that_hangs_up_leaves_nothing(bridge):
    until(lambda: bridge.requests() == 0, "earlier requests to end")
    with bridge_stream(bridge, LONG) as first:
        assert first[:4] == b"RIFF"
        assert first[40:44] == b"\xff\xff\xff\xff"
        assert bridge.requests() == 1  # sound came before all of it was made
    until(lambda: bridge.requests() == 0, "the request's socket to be closed")
    assert bridge.speech(input=TEXT)[0] == 200


def test_clients_that_hang_up_at_any_byte_are_no_faults_of_ours(bridge):
    """The log must hold no traceback afterwards: see `bridging`."""
    for size in (1, 44, 1000, 8000, 20_000, 60_000):
        with bridge_stream(bridge, LONG, size):
            pass
    until(lambda: bridge.requests() == 0, "the requests to end")
    assert bridge.speech(input=TEXT)[0] == 200


def test_voices(bridge, quiet_daemon):
    status, _, data = bridge.get("/v1/audio/voices")
    voices = {one["id"]: one for one in msgspec.json.decode(data)["voices"]}
    assert status == 200
    with quiet_daemon.client() as client:
        told = {one["name"]: one for one in client.call("voices")["voices"]}
    assert {name.partition("/")[0] for name in voices} == set(told)
    assert len(voices) == len(told) + len(told["kokoro"]["speakers"])
    assert [name for name, one in voices.items() if one["default"]] == ["joe-us"]
    for name in ("joe-us", "kokoro/af_alloy"):
        assert voices[name]["name"] == name
        assert voices[name]["sample_rate"] == told[name.partition("/")[0]]["sample_rate"]


def test_health_is_the_daemons(bridge, quiet_daemon):
    status, _, data = bridge.get("/health")
    health = msgspec.json.decode(data)
    assert (status, health["audible"]) == (200, True)
    assert health["daemon"]["pid"] == quiet_daemon.process.pid


def test_speak_sounds(bridge, quiet_daemon):
    with listening(quiet_daemon) as listener:
        body = {"text": TEXT, "id": "by-http", "priority": "important", "marks": True}
        status, _, data = bridge.ask("POST", "/v1/speak", body)
        assert status == 200
        assert msgspec.json.decode(data) == {
            "ok": True,
            "id": "by-http",
            "client": "http",
            "voice": "joe-us",
        }
        end = listener.wait_for("by-http", timeout_s=PATIENCE_S)
        assert (end["event"], end["client"]) == ("ended", "http")


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("audio/speech", {"voice": "joe-us"}, (400, "bad_request", None)),
        ("audio/speech", {"input": 7}, (400, "bad_request", "input")),
        ("audio/speech", {"input": " "}, (400, "bad_request", "input")),
        ("audio/speech", {"input": TEXT, "speed": 9}, (400, "bad_request", "speed")),
        ("audio/speech", {"input": TEXT, "speed": float("nan")}, (400, "bad_request", None)),
        ("audio/speech", {"input": TEXT, "response_format": "mp3"}, (400, "bad_request", None)),
        ("audio/speech", {"input": TEXT, "stream_format": "sse"}, (400, "bad_request", None)),
        ("audio/speech", {"input": TEXT, "voice": "alloy"}, (404, "unknown_voice", "voice")),
        ("audio/speech", {"input": "a" * 30_000}, (413, "too_long", "input")),
        ("audio/speech", ["input"], (400, "bad_request", None)),
        ("speak", {"text": TEXT, "rate": 9}, (400, "bad_request", "rate")),
        ("speak", {"text": TEXT, "txet": TEXT}, (400, "bad_request", "txet")),
        ("speak", {"text": TEXT, "command": "cancel"}, (400, "bad_request", "command")),
        ("speak", {"text": TEXT, "voice": "nobody"}, (404, "unknown_voice", "voice")),
        ("cancel", {}, (404, "not_offered", None)),
    ],
)
def test_what_cannot_be_done_is_told(bridge, path, body, told):
    status, code, parameter = told
    error = error_of(bridge.ask("POST", f"/v1/{path}", body), status)
    assert error["code"] == code
    assert error["type"] == "invalid_request_error"
    if parameter is not None:
        assert error["param"] == parameter
    assert error["message"]


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe\xfd", b"[" * 100_000, b'{"a":' * 5000])
@pytest.mark.parametrize("path", ["/v1/audio/speech", "/v1/speak"])
def test_bodies_that_are_no_json_are_refused(bridge, path, data):
    error = error_of(bridge.ask("POST", path, data=data), 400)
    assert error["code"] == "bad_request"


def test_a_body_that_is_too_long_is_refused(bridge):
    body = io.BytesIO(b'{"text": "' + b"a" * 2_000_000 + b'"}')
    assert error_of(bridge.ask("POST", "/v1/speak", data=body), 413)["code"] == "too_long"


def test_half_a_character_is_mended_as_the_daemon_does(bridge):
    assert bridge.ask("POST", "/v1/audio/speech", data=b'{"input": "Hi \\ud83d"}')[0] == 200


def test_a_full_queue_says_when_to_come_again(tmp_path, voices_dir):
    environment = {"UTTERD_AUDIO_SINK": "null", "UTTERD_LIMITS_WAITING": "1"}
    options = ("--voice", "joe-us")
    daemon = DaemonProcess(tmp_path / "run", voices_dir, *options, environment=environment)
    try:
        with bridging(daemon.run_dir) as bridge, held(daemon) as client:
            client.call("speak", text=TEXT)
            status, headers, data = bridge.ask("POST", "/v1/speak", {"text": TEXT})
            error = error_of((status, headers, data), 429)
            assert error["code"] == "queue_full"
            assert error["type"] == "rate_limit_error"
            assert int(headers["Retry-After"]) >= 1
    finally:
        daemon.stop()


def test_a_daemon_that_dies_cuts_the_stream_and_is_missed(tmp_path, voices_dir):
    environment = {"UTTERD_AUDIO_SINK": "null"}
    options = ("--voice", "joe-us")
    daemon = DaemonProcess(tmp_path / "run", voices_dir, *options, environment=environment)

    async def cut(url):
        timeout = aiohttp.ClientTimeout(total=PATIENCE_S)
        async with (
            aiohttp.ClientSession(url, timeout=timeout) as session,
            session.post("/v1/audio/speech", json={"input": LONG * 10}) as response,
        ):
            assert response.status == 200
            await response.content.readexactly(44)
            await asyncio.to_thread(daemon.stop, signal.SIGKILL)
            with pytest.raises(aiohttp.ClientPayloadError):  # not an end like any other
                await response.read()

    try:
        with bridging(daemon.run_dir) as bridge:
            asyncio.run(cut(bridge.url))
            error = error_of(bridge.get("/health"), 503)
            assert (error["code"], error["type"]) == ("unavailable", "server_error")
            assert "utterd serve" in error["message"]
            daemon.start()
            assert bridge.speech(input=TEXT)[0] == 200
    finally:
        if daemon.process.poll() is None:
            daemon.stop()


def test_too_many_requests_at_once_are_refused(bridge):
    async def flood():
        timeout = aiohttp.ClientTimeout(total=PATIENCE_S)
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(bridge.url, timeout=timeout, connector=connector) as many:

            async def one():
                async with many.post("/v1/audio/speech", json={"input": TEXT}) as response:
                    return response.status, "Retry-After" in response.headers

            return await asyncio.gather(*(one() for _ in range(MOST + 50)))

    found = asyncio.run(flood())
    assert {status for status, _ in found} == {200, 429}
    assert all(told == (status == 429) for status, told in found)
    assert bridge.speech(input=TEXT)[0] == 200


# ---- who may call ----


@pytest.mark.parametrize("origin", ["http://evil.example", "null", PAGE + "0", "http://localhost"])
@pytest.mark.parametrize("path", ["/v1/speak", "/v1/audio/speech"])
def test_web_pages_may_not_call(bridge, path, origin):
    headers = {"Origin": origin, "Content-Type": "text/plain"}
    answer = bridge.ask("POST", path, data=b'{"text": "x", "input": "x"}', headers=headers)
    assert error_of(answer, 403)["code"] == "forbidden"
    assert "Access-Control-Allow-Origin" not in answer[1]
    status, headers, _ = bridge.ask("OPTIONS", path, headers={"Origin": origin})
    assert status == 403
    assert "Access-Control-Allow-Origin" not in headers


def test_a_page_that_was_allowed_may_call_and_read(bridge):
    asked = {"Origin": PAGE, "Access-Control-Request-Method": "POST"}
    status, headers, _ = bridge.ask("OPTIONS", "/v1/audio/speech", headers=asked)
    assert (status, headers["Access-Control-Allow-Origin"]) == (204, PAGE)
    assert "Content-Type" in headers["Access-Control-Allow-Headers"]
    body = {"input": TEXT}
    status, headers, _ = bridge.ask("POST", "/v1/audio/speech", body, headers={"Origin": PAGE})
    assert (status, headers["Access-Control-Allow-Origin"]) == (200, PAGE)


@pytest.mark.parametrize(
    ("host", "status"),
    [("evil.example", 403), ("evil.example:8317", 403), ("localhost:1", 200), ("[::1]", 200)],
)
def test_a_name_that_was_made_to_point_here_is_refused(bridge, host, status):
    assert bridge.get("/health", headers={"Host": host})[0] == status


def test_a_token_is_asked_for(quiet_daemon, tmp_path):
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    options = ("--token-file", str(file), "--allow-origin", PAGE)
    with bridging(quiet_daemon.run_dir, *options) as bridge:
        for value in (None, TOKEN, f"Bearer {TOKEN}x", "Bearer ", f"Basic {TOKEN}", "Bearer \xe9"):
            headers = {} if value is None else {"Authorization": value}
            for path in ("/health", "/v1/audio/voices", "/nowhere"):
                answer = bridge.get(path, headers=headers)
                assert error_of(answer, 401)["type"] == "authentication_error"
                assert answer[1]["WWW-Authenticate"] == "Bearer"
        right = {"Authorization": f"Bearer {TOKEN}"}
        assert bridge.get("/health", headers=right | {"Host": "speaker.example"})[0] == 200
        assert bridge.get("/health", headers=right | {"Origin": "http://evil.example"})[0] == 403
        assert bridge.ask("OPTIONS", "/v1/speak", headers={"Origin": PAGE})[0] == 204
        assert TOKEN.encode() not in bridge.log


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--listen", "0.0.0.0:0"), "--token-file"),
        (("--listen", "[::]:0"), "--token-file"),
        (("--listen", "192.0.2.1:80"), "--token-file"),
        (("--listen", "localhost:80"), "127.0.0.1:8317"),
        (("--listen", "127.0.0.1"), "127.0.0.1:8317"),
        (("--listen", "127.0.0.1:99999"), "127.0.0.1:8317"),
        (("--token-file", "/nowhere/token"), "/nowhere/token"),
        (("--token-file", os.devnull), "openssl rand"),
        (("--allow-origin", "*"), "http://localhost:3000"),
        (("--allow-origin", "http://a/b"), "http://localhost:3000"),
    ],
)
def test_options_that_cannot_be_used_are_told(tmp_path, options, told):
    assert told in complaint(run("http", "--run-dir", str(tmp_path), *options), 2)


def test_an_address_that_is_taken_is_told(bridge, tmp_path):
    result = run("http", "--run-dir", str(tmp_path), "--listen", bridge.address)
    assert "--listen" in complaint(result, 1)


def test_without_its_library_it_says_what_to_install(tmp_path):
    lacking = "raise ModuleNotFoundError(\"No module named 'aiohttp'\", name='aiohttp')\n"
    (tmp_path / "aiohttp.py").write_text(lacking)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    line = complaint(run("http", "--run-dir", str(tmp_path), env=environment), 1)
    assert "pip install 'utterd[http]'" in line
    assert "utterd" in done(run("--version", env=environment))


def test_ctrl_c_ends_it(tmp_path):
    process = spawn("http", "--run-dir", str(tmp_path), "--listen", "127.0.0.1:0")
    assert b"listening" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert finish(process).returncode == 0
