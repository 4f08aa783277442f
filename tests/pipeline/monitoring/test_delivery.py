"""Delivery: each new alert is told once, to a program or a web address, and never by accident."""

import json
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from histories import NIGHTS, fill, put, score, small_audit
from stores import in_history

from assets.alert_checks import finding
from assets.history import by_schedule
from pipeline.errors import SettingsError
from pipeline.monitoring.alerts import act, alerts
from pipeline.monitoring.assess import assess
from pipeline.monitoring.delivery import deliver
from pipeline.settings.audit import Settings
from pipeline.settings.load import settings_from
from pipeline.settings.sections import Notify

NEWEST = NIGHTS[12]
_PROGRAM = """\
import sys
body = sys.stdin.buffer.read()
if {fails}:
    sys.exit("no network")
with open({out!r}, "ab") as file:
    file.write(body + b"\\n")
"""


def program(folder: Path, *, fails: bool = False) -> list[str]:
    """A command that appends what it gets to told.jsonl, or fails."""
    file = folder / "tell.py"
    file.write_text(_PROGRAM.format(fails=fails, out=str(folder / "told.jsonl")), "utf-8")
    return [sys.executable, str(file)]


def told(folder: Path) -> list[dict[str, Any]]:
    file = folder / "told.jsonl"
    return (
        [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Twelve quiet nights, assessed, and a program to be told; the thirteenth is a breach."""
    found = small_audit(
        tmp_path, trends={"least": 50, "window": 60}, notify={"command": program(tmp_path)}
    )
    fill(found, 12)
    assess(found)
    put(found, NEWEST, [score(0.5)])
    return found


@pytest.mark.slow
def test_a_new_alert_is_told_once(settings: Settings) -> None:
    assess(settings, [NEWEST], notify="newest")
    assert deliver(settings) == 1
    (alert,) = told(settings.folder)
    (row,) = alerts(settings)
    names = ("alert", "kind", "state", "opened", "text", "query", "acknowledged_at")
    assert {name: alert[name] for name in names} == {name: row[name] for name in names}
    assert deliver(settings) == 0
    put(settings, NIGHTS[13], [score(0.5)])
    assess(settings, [NIGHTS[13]], notify="newest")
    assert deliver(settings) == 0
    assert len(told(settings.folder)) == 1


@pytest.mark.slow
def test_running_a_past_batch_again_tells_nothing(settings: Settings) -> None:
    assess(settings, [NEWEST], notify="newest")
    deliver(settings)
    put(settings, NIGHTS[6], [score(0.5)])
    # The breach of the newest night now begins a night earlier, under another name or not.
    put(settings, NIGHTS[11], [score(0.5)])
    assess(settings, [NIGHTS[6], NIGHTS[11]], notify="newest")
    assert deliver(settings) == 0
    assert len(told(settings.folder)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("batches", [[], [NIGHTS[11]]])
def test_what_another_batch_opened_is_never_told(settings: Settings, batches: list[str]) -> None:
    assess(settings, batches, notify="newest")
    assert deliver(settings) == 0
    assert [row["silent"] for row in alerts(settings)] == [True]


@pytest.mark.slow
def test_a_backfill_tells_when_asked(settings: Settings) -> None:
    put(settings, NIGHTS[6], [score(0.5)])
    put(settings, NIGHTS[7], [score(None)])
    assess(settings, [NIGHTS[6], NEWEST], notify="all")
    # The earlier episode is over by now: only what is open is news.
    assert deliver(settings) == 1


def test_nobody_to_tell_then_is_nobody_to_tell_later(settings: Settings) -> None:
    off = settings.model_copy(update={"notify": type(settings.notify)()})
    assess(off, [NEWEST], notify="newest")
    assert deliver(off) == 0
    assert deliver(settings) == 0


@pytest.mark.slow
@pytest.mark.parametrize("action", ["ack", "snooze"])
def test_what_somebody_has_seen_to_is_not_told(settings: Settings, action: str) -> None:
    assess(settings, [NEWEST], notify="newest")
    (row,) = alerts(settings)
    until = datetime.now() + timedelta(days=2) if action == "snooze" else None
    act(settings, [row["alert"]], action, who="eve", until=until)
    assert deliver(settings) == 0


@pytest.mark.slow
def test_a_failure_is_a_warning_and_is_tried_again(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    program(settings.folder, fails=True)
    assess(settings, [NEWEST], notify="newest")
    assert deliver(settings) == 0
    assert "will be tried again" in caplog.messages[0]
    assert "no network" in caplog.messages[0]
    # It is still told when the incident is over by then.
    put(settings, NIGHTS[13], [score(0.9)])
    assess(settings, [NIGHTS[13]], notify="newest")
    program(settings.folder)
    assert deliver(settings) == 1
    assert len(caplog.messages) == 1
    assert told(settings.folder)[0]["state"] == "resolved"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["/no/such/program"], "No such file"),
        ([sys.executable, "-c", "import time; time.sleep(60)"], "took longer than 0.2 s"),
    ],
)
def test_programs_that_cannot_be_run(
    settings: Settings, command: list[str], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    assess(settings, [NEWEST], notify="newest")
    notify = settings.notify.model_copy(update={"command": tuple(command), "timeout_seconds": 0.2})
    assert deliver(settings.model_copy(update={"notify": notify})) == 0
    assert why in caplog.messages[0]


@pytest.fixture
def server() -> Iterator[Any]:
    """A web server on this machine: what was posted, and the status it answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.posts.append((self.path, self.headers["Content-Type"], json.loads(body)))
            found.users.append(self.headers["Authorization"])
            self.send_response(found.status)
            if found.elsewhere:
                self.send_header("Location", found.elsewhere)
            self.end_headers()

        def do_GET(self) -> None:
            found.users.append(self.headers["Authorization"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    class Server(HTTPServer):
        posts: list[Any]
        users: list[str | None]
        status: int
        elsewhere: str

    found = Server(("127.0.0.1", 0), Handler)
    found.posts, found.users, found.status, found.elsewhere = [], [], 200, ""
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


@pytest.mark.slow
def test_a_webhook_gets_json(
    settings: Settings, server: Any, caplog: pytest.LogCaptureFixture
) -> None:
    address = f"http://127.0.0.1:{server.server_port}/hook?key=secret"
    notify = settings.notify.model_copy(update={"command": None, "webhook": address})
    settings = settings.model_copy(update={"notify": notify})
    assess(settings, [NEWEST], notify="newest")
    server.status = 500
    assert deliver(settings) == 0
    assert "500" in caplog.messages[0]
    assert "secret" not in caplog.messages[0]
    server.status = 200
    assert deliver(settings) == 1
    path, kind, alert = server.posts[-1]
    assert (path, kind) == ("/hook?key=secret", "application/json")
    assert alert["kind"] == "breach"
    assert in_history(settings, "SELECT 1 FROM alerts WHERE notified_at IS NOT NULL")


@pytest.mark.slow
def test_a_webhook_with_a_password(
    settings: Settings, server: Any, caplog: pytest.LogCaptureFixture
) -> None:
    host = f"127.0.0.1:{server.server_port}"
    notify = Notify(webhook=f"http://me:s%C3%A9cret%40%3A@{host}/hook")
    settings = settings.model_copy(update={"notify": notify})
    assert "cret" not in f"{settings!r} {settings}"
    assess(settings, [NEWEST], notify="newest")
    server.status = 401
    assert deliver(settings) == 0
    assert "401" in caplog.messages[0]
    assert "cret" not in caplog.text
    server.status, server.elsewhere = 302, f"http://{host}/other"
    server.users.clear()
    assert deliver(settings) == 1
    basic = "Basic " + b64encode("me:sécret@:".encode()).decode()
    # Where the server sends us on to, the password does not go along.
    assert server.users == [basic, None]
    assert server.posts[-1][0] == "/hook"


@pytest.mark.parametrize(
    "address",
    [
        "http://",
        "http://me:secret@",
        "http://me:secret@host:port/",
        "http://me:secret/1@host/",
        "http://me:secret#1@host/",
        "http://host:0/secret",
        "http://host/with space?secret",
        "http://host/secret\n",
    ],
)
def test_an_address_that_is_none_is_refused_and_not_shown(address: str) -> None:
    with pytest.raises(SettingsError, match="webhook: is no address") as refused:
        settings_from({"attributes": ["a"], "notify": {"webhook": address}}, folder=Path())
    assert "secret" not in str(refused.value)
    assert "%40" in str(refused.value)


@pytest.mark.parametrize(
    ("tags", "tells"),
    [
        ({}, False),
        ({"dagster/schedule_name": "nightly"}, True),
        ({"dagster/schedule_name": "nightly", "dagster/backfill": "b"}, False),
    ],
)
def test_of_runs_in_dagster_only_those_of_a_schedule_tell(
    tags: dict[str, str], tells: bool
) -> None:
    assert by_schedule(dg.DagsterRun("audit", tags=tags)) == tells


@pytest.mark.slow
def test_the_check_on_the_history_lists_what_was_seen(settings: Settings) -> None:
    assess(settings, [NEWEST])
    found = finding(NEWEST, alerts(settings, batches=[NEWEST]))
    assert (found.passed, found.description) == (False, "Alerts seen: 1 breach.")
    assert found.metadata["alerts"] == 1
    quiet = finding(NIGHTS[3], alerts(settings, batches=[NIGHTS[3]]))
    assert (quiet.passed, quiet.description) == (True, "No alert was seen.")
