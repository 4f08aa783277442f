"""Notifications of new alerts, to a program or a web address; off by default.

Not here: which alerts there are (``episodes``), and what they say (``alert_texts``).
"""

import json
import logging
import subprocess
from base64 import b64encode
from urllib.parse import unquote_to_bytes, urlsplit

from pipeline.history.commits import has_history, sealed
from pipeline.history.opening import has_table, open_history
from pipeline.monitoring.previous import read_rows
from pipeline.privacy.suppression import Shown
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from pipeline.store.sessions import first_line
from pipeline.store.tables import now
from schemas.columns import Row
from schemas.monitoring import ALERT_ORDER, ALERTS

_LOG = logging.getLogger(__name__)
_PENDING = (
    "state <> 'withdrawn' AND NOT silent AND notified_at IS NULL AND acknowledged_at IS NULL "
    "AND coalesce(snoozed_until <= ?, true)"
)
"""Alerts that nobody has heard of and that somebody should, be they over by now or not."""


def deliver(settings: Settings) -> int:
    """Send each alert once that was not sent, snoozed or acknowledged; returns how many.

    ``notify.command`` gets the alert as JSON on its standard input, ``notify.webhook`` as the body
    of a POST.  A failure is a warning, and is tried again at the next delivery; with both
    configured, an alert counts as sent when both have it.  The store is not locked meanwhile, so
    two deliveries at the same moment may send an alert twice, but none is lost.
    """
    notify = settings.notify
    if notify.command is None and notify.webhook is None:
        return 0
    sent = []
    for alert in _pending(settings):
        try:
            if notify.command is not None:
                _run(notify.command, as_json(alert), notify.timeout_seconds)
            if notify.webhook is not None:
                _post(notify.webhook, as_json(alert), notify.timeout_seconds)
        except _Failed as failed:
            _LOG.warning(
                "alert %s was not sent, and will be tried again: %s", alert["alert"], failed
            )
            continue
        sent.append(alert["alert"])
    if sent:
        with (
            open_history(settings) as connection,
            sealed(
                connection,
                store_of(settings),
                "notify",
                {"alerts": sent},
                writes={"alerts": sent},
            ),
        ):
            connection.execute(
                "UPDATE history.alerts SET notified_at = ? WHERE list_contains(?, alert)",
                [now(), sent],
            )
    return len(sent)


class _Failed(Exception):
    """A delivery that did not arrive; the text says why."""


def _pending(settings: Settings) -> list[Row]:
    if not has_history(store_of(settings)):
        return []
    with open_history(settings, read_only=True) as connection:
        if not has_table(connection, ALERTS):
            return []
        told = Shown(connection, settings).table(ALERTS)
        return read_rows(connection, ALERTS, _PENDING, [now()], told, ALERT_ORDER)


def as_json(alert: Row) -> bytes:
    """An alert as receivers get it: one JSON object with the columns of the table."""
    told = {
        name: value.isoformat() + "Z" if hasattr(value, "isoformat") else value
        for name, value in alert.items()
        if name not in ("silent", "notified_at")
    }
    return json.dumps(told, ensure_ascii=False).encode()


def _run(command: tuple[str, ...], body: bytes, seconds: float) -> None:
    """Run a program, without a shell, with ``body`` on its standard input."""
    try:
        done = subprocess.run(
            command, input=body, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise _Failed(f"{command[0]} took longer than {seconds:g} s") from None
    except (OSError, ValueError) as error:
        raise _Failed(f"{command[0]}: {error}") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().split("\n")[-1][:200]
        raise _Failed(f"{command[0]} ended with {done.returncode}" + (f": {said}" if said else ""))


def _post(address: str, body: bytes, seconds: float) -> None:
    """POST ``body`` as JSON; ``user:password@`` in the address is told as HTTP does it (Basic)."""
    from http.client import HTTPException
    from urllib.request import Request, urlopen

    try:
        parts = urlsplit(address)
        user, _, host = parts.netloc.rpartition("@")
        plain = parts._replace(netloc=host).geturl()
        request = Request(plain, body, {"Content-Type": "application/json"}, method="POST")
        if user:
            # Whoever the host may send us on to is not told.
            secret = unquote_to_bytes(user if ":" in user else f"{user}:")
            request.add_unredirected_header("Authorization", f"Basic {b64encode(secret).decode()}")
        with urlopen(request, timeout=seconds) as answer:
            answer.read()
    except (OSError, ValueError, HTTPException) as error:
        # An address may hold a secret, so only its host is shown, if that.
        raise _Failed(f"webhook: {first_line(error)}") from None
