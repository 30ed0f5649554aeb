"""`utterd status`, `utterd stop`, `utterd config`."""

import argparse
import json

import msgspec

from utterd.daemon.client import Client
from utterd.daemon.config import Config


def status(options: argparse.Namespace, config: Config) -> int:
    """Print what speaks, what waits, and whether anything can be heard; 1 if nothing can."""
    with Client(config) as client:
        queue = client.call("status")
        health = client.call("health")
    if options.json:
        print(json.dumps({"queue": queue, "health": health}, ensure_ascii=False))
        return 0 if health["audible"] else 1
    device = health["device"]
    print("can be heard" if health["audible"] else "can NOT be heard")
    for problem in health["problems"]:
        print(f"  problem: {problem}")
    for one in health["degraded"]:
        if one["message"] not in health["problems"]:
            print(f"  degraded: {one['what']}: {one['message']}")
    print(
        f"device   {device['name']} ({device['sink']}, {device['rate']} Hz, "
        f"latency {device['latency_ms']} ms, {device['underruns']} underruns, "
        f"real time {'granted' if device['realtime'] else 'not granted'})"
        + (", let go until there is sound" if device["released"] else "")
    )
    for voice in health["voices"]:
        print(
            f"voice    {voice['name']}: {voice['state']}, {voice['runtime'] or 'no runtime yet'}, "
            f"{voice['rss_bytes'] / 1e6:.0f} MB, {voice['restarts']} restarts"
        )
    print(f"queue    {len(queue['speaking'])} on their way, {len(queue['waiting'])} waiting")
    ended = ", ".join(f"{count} {name}" for name, count in queue["ended"].items())
    print(f"so far   {ended or 'nothing spoken'}")
    return 0 if health["audible"] else 1


def stop(options: argparse.Namespace, config: Config) -> int:
    """Cancel everything."""
    with Client(config) as client:
        reply = client.call("cancel", all=True)
    if options.json:
        print(json.dumps(reply))
    else:
        print(f"{reply['cancelled']} cancelled, silent after {reply['silent_after_ms']:.1f} ms")
    return 0


def configuration(config: Config) -> int:
    """Print the configuration in force."""
    print(msgspec.toml.encode(config).decode().strip())
    return 0
