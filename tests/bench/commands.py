"""What `storm.py` and `fuzz.py` say to the daemon: texts, and one command of every kind."""

from typing import Any

TEXTS = ("好", "前方右转", "您有一条新消息。", "OK", "今天天气很好，我们出发吧。")
PRIORITIES = ("important", "message", "text", "notification", "progress")
QUEUES = ("add", "flush", "replace")
ON_INTERRUPT = ("resume", "restart", "drop")

_BRIEF: dict[str, Any] = {"priority": "progress", "ttl_ms": 1}
"""A flood of these never fills the queue: each is gone at once."""

COMMANDS: list[dict[str, Any]] = [
    *({"command": "speak", "text": text, "id": "a"} | _BRIEF for text in TEXTS),
    {"command": "speak", "text": "hello", "more": True, "id": "s", "queue": "flush"},
    {"command": "speak", "text": "重要", "priority": "important", "ttl_ms": 1, "key": "k"},
    {"command": "speak", "text": "留住", "durable": True, "marks": True, "rate": 3.0} | _BRIEF,
    {"command": "speak", "text": "<speak>一<break time='1s'/></speak>", "format": "ssml"},
    {"command": "play_sound", "sound": "chirp.flac", "priority": "progress", "ttl_ms": 1},
    {"command": "append", "id": "s", "text": "世界"},
    {"command": "finish", "id": "s"},
    {"command": "cancel", "all": True},
    {"command": "cancel", "id": "a"},
    *({"command": name} for name in ("stop", "skip", "pause", "resume", "say_again", "cancel")),
    *({"command": name} for name in ("status", "voices", "ping", "info", "metrics", "describe")),
    {"command": "status", "id": "a", "client": "x"},
    {"command": "health", "client": "x"},
    {"command": "set", "gain": 1.0},
]
EXTREMES = ["", 0, -1, 2**63, 1e308, None, True, [], {}, "\x00", "很" * 1000, [[[[]]]]]
"""What no field expects."""
