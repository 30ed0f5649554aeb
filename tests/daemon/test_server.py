"""What has arrived when the sockets are closed for the next daemon is answered by this one."""

import asyncio
import json
import time

import zmq

from utterd.daemon.config import Config, Paths
from utterd.daemon.server import Server


def test_what_has_arrived_and_was_not_read_is_carried_out(tmp_path):
    config = Config(paths=Paths(run=str(tmp_path), data=str(tmp_path)))
    taken: list[bytes] = []

    def handle(frame, peer):
        taken.append(frame)
        server.reply(peer, {"ok": True})

    async def serve(context):
        server.open()
        client = context.socket(zmq.DEALER)
        client.linger = 0
        client.connect(config.control)
        client.send(b"first")
        while not taken:
            await asyncio.sleep(0.001)
        client.send(b"second")
        time.sleep(0.2)  # the loop is busy while it arrives
        assert taken == [b"first"]
        server.take_arrived()
        server.close()
        assert taken == [b"first", b"second"]
        for _ in taken:
            assert client.poll(10_000)
            assert json.loads(client.recv()) == {"ok": True}
        client.close()

    server = Server(config, handle)
    with zmq.Context() as context:
        asyncio.run(serve(context))
    assert not list(tmp_path.iterdir())
