"""Wiring: one service, its sockets, its signals, its end."""

import asyncio
import gc
import logging
import resource
import signal
from typing import TYPE_CHECKING, Any

from utterd.daemon import health, notify
from utterd.daemon.commands import Commands
from utterd.daemon.config import Config
from utterd.daemon.lock import StartError
from utterd.daemon.server import Peer, Server
from utterd.daemon.service import Service
from utterd.sysconfig.config import ConfigError

if TYPE_CHECKING:
    from utterd.daemon.prometheus import Exporter

log = logging.getLogger("main")

Ends = asyncio.Queue[str]
"""What ends the daemon: "", or why another shall take its place."""


def serve(config: Config) -> bool:
    """Run the daemon until SIGTERM or SIGINT, or until it has grown over its limit.

    Args:
        config: whose run folder is locked.

    Returns:
        Whether another shall take its place.

    Raises:
        StartError: a folder or socket can't be had, or it was taken away.
    """
    _raise_descriptor_limit()
    return asyncio.run(_run(config))


async def _run(config: Config) -> bool:
    ends: Ends = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ends.put_nowait, "")
    server: Server

    def publish(topic: bytes, body: bytes) -> None:
        server.publish(topic, body)

    def reply(peer: Peer, body: dict[str, Any], *frames: bytes) -> None:
        server.reply(peer, body, *frames)

    try:
        service = Service(config, publish, renew=ends.put_nowait)
    except ConfigError as error:
        raise StartError(str(error)) from None
    commands = Commands(service, reply)
    server = Server(config, commands.handle)
    try:
        server.open()
        exporter = await _export(config, service)
    except OSError as error:
        raise StartError(str(error)) from None
    service.start()
    tasks = [
        asyncio.create_task(_announce(service)),
        asyncio.create_task(_watch(server, ends)),
    ]
    again = await _wait(service, server, ends)
    reachable = server.intact()
    if again:  # at once: what clients send from now on waits for the next daemon
        server.close()
    notify.notify("STOPPING=1")
    log.info("stopping", extra={"reason": again} if again else None)
    for task in tasks:
        task.cancel()
    if exporter is not None:
        exporter.close()
    if again:
        service.hand_over()
    service.close()
    server.close()
    if not reachable:
        raise StartError(
            f"the sockets in {config.run_dir} were taken away while it ran: start it anew"
        )
    await asyncio.sleep(0.001)  # a signal that came meanwhile
    if again and not ends.empty():
        service.renewal.take_back()
        again = ""
    return bool(again)


async def _wait(service: Service, server: Server, ends: Ends) -> str:
    """Wait for the end.

    Returns:
        Why another daemon shall take the place of this one; "" if none shall.
    """
    while reason := await ends.get():
        server.take_arrived()
        if service.is_idle():
            break
        service.renewal.put_off()
    return reason


async def _watch(server: Server, ends: Ends) -> None:
    """End a daemon that no client can find any more, so that it is started anew."""
    while server.intact():
        await asyncio.sleep(1.0)
    ends.put_nowait("")


async def _export(config: Config, service: Service) -> "Exporter | None":
    """Serve the metrics where the configuration says so; the library is not loaded elsewhere."""
    if not config.metrics.listen:
        return None
    from utterd.daemon.prometheus import Exporter  # noqa: PLC0415 - see above

    exporter = Exporter(config.metrics.listen, lambda: health.measure(service))
    await exporter.open()
    return exporter


async def _announce(service: Service) -> None:
    """Tell systemd and the log when the daemon is ready, then feed the watchdog."""
    while not health.ready(service):
        problem = "; ".join(health.describe(service)["problems"])
        notify.notify("EXTEND_TIMEOUT_USEC=10000000", f"STATUS={problem}")
        await asyncio.sleep(0.05)
    gc.collect()
    gc.freeze()
    notify.notify("READY=1", "STATUS=ready")
    service.ready()
    log.info("ready", extra={"control": service.config.control})
    interval = notify.watchdog_seconds() / 3
    while interval:
        if service.progressing():
            notify.notify("WATCHDOG=1")
        await asyncio.sleep(interval)


def _raise_descriptor_limit() -> None:
    """Every client costs a descriptor: take what the hard limit gives."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
