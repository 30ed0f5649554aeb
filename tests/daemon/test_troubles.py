"""What is degraded is told once when it comes and once when it goes, and shown in between."""

from hypothesis import given, settings
from hypothesis import strategies as st

from utterd.daemon import events
from utterd.daemon.troubles import Troubles

NAMES = st.sampled_from(("voice a", "journal", "real-time priority"))
FOUND = st.dictionaries(NAMES, st.sampled_from(("it is full", "it is gone")), max_size=3)


def told(event: events.Event) -> tuple[str, str]:
    assert isinstance(event, events.Degraded | events.Recovered)
    return str(event.__struct_config__.tag), event.what


def test_the_same_is_told_once_and_another_reason_anew(caplog) -> None:
    heard: list[events.Event] = []
    troubles = Troubles(heard.append)
    for message in ("it died", "it died", "it keeps dying"):
        troubles.degrade("voice a", message)
    assert [told(event) for event in heard] == 2 * [("degraded", "voice a")]
    (shown,) = troubles.describe()
    assert (shown["what"], shown["message"]) == ("voice a", "it keeps dying")
    troubles.recover("voice a")
    troubles.recover("voice a")
    assert told(heard[-1]) == ("recovered", "voice a")
    assert len(heard) == 3
    assert troubles.describe() == []
    assert [record.getMessage() for record in caplog.records].count("degraded") == 2


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(FOUND, max_size=8))
def test_events_and_health_follow_what_is_found(looks: list[dict[str, str]]) -> None:
    heard: list[events.Event] = []
    troubles = Troubles(heard.append)
    degraded: dict[str, str] = {}
    for found in looks:
        seen = len(heard)
        troubles.look(found)
        for event in heard[seen:]:
            name, what = told(event)
            if name == "recovered":
                del degraded[what]
            else:
                assert degraded.get(what) != event.message, "told twice"
                degraded[what] = event.message
        assert degraded == found
        assert {str(t["what"]): t["message"] for t in troubles.describe()} == found


def test_what_others_report_is_left_alone_by_a_look() -> None:
    troubles = Troubles(lambda event: None)
    troubles.degrade("voice a", "it died")
    troubles.look({"journal": "it is full"})
    troubles.look({})
    assert [shown["what"] for shown in troubles.describe()] == ["voice a"]
