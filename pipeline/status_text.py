"""How verdicts look: a symbol beside the word, so that nothing rests on colour alone."""

STATUS_SYMBOLS = {
    "ok": "+",
    "breach": "!",
    "insufficient": "?",
    "undefined": "o",
    "not_judged": "-",
    "gated": "#",
}
STATUS_STYLES = {
    "ok": "green",
    "breach": "bold red",
    "insufficient": "yellow",
    "undefined": "yellow",
    "not_judged": "",
    "gated": "yellow",
}
GRAVEST = ("breach", "gated", "insufficient")
"""Statuses that charts mark, those first that hide others."""


def status_text(status: str) -> str:
    """A status as people read it.

    >>> status_text("not_judged")
    '- not judged'
    """
    return f"{STATUS_SYMBOLS[status]} {status.replace('_', ' ')}"


def styled(status: str, text: str) -> str:
    """``text``, which is rich markup, in the colour of a status."""
    style = STATUS_STYLES[status]
    return f"[{style}]{text}[/]" if style else text
