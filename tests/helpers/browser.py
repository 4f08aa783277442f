"""Debian's Chromium, driven by Playwright: a page is opened, watched and looked at.

What belongs here: what holds for any page.  Nothing is downloaded, and no page reaches the network.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Route, sync_playwright

PROGRAM = Path(os.environ.get("EVENRANK_CHROMIUM", "/usr/bin/chromium"))
Scheme = Literal["light", "dark"]
_QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_LISTEN = """window.violations = [];
document.addEventListener('securitypolicyviolation', event => window.violations.push(
    `${event.violatedDirective}: ${event.blockedURI || event.sample || 'inline'}`));"""
_NOT_DRAWN = """() => [...document.querySelectorAll('[data-part]')].filter(part =>
    part.checkVisibility() && (!part.textContent.trim() || [...part.querySelectorAll('.plot')].some(
        plot => plot.checkVisibility() && !plot.querySelector('svg path, svg line'))
    )).map(part => part.dataset.part)"""
_TOUCHING = """() => {
    const found = [];
    for (const row of document.querySelectorAll('.plot, .scale, .band')) {
        const texts = [...row.querySelectorAll('span')].filter(each => each.checkVisibility()
            && each.textContent.trim() && !each.querySelector('span'))
            .map(each => [each.textContent, each.getBoundingClientRect()]);
        texts.forEach(([text, box], n) => texts.slice(n + 1).forEach(([other, its]) => {
            if (box.left < its.right - 1 && its.left < box.right - 1 && box.top < its.bottom - 2
                && its.top < box.bottom - 2) found.push(`${text} | ${other}`);
        }));
    }
    return found;
}"""
_FOCUSED = """() => { const at = document.activeElement; return at === document.body ? null : {
    tag: at.tagName.toLowerCase(), id: at.id, text: at.textContent.trim().slice(0, 60),
    href: at.getAttribute('href'), label: at.dataset.label ?? null,
    slice: at.dataset.slice ?? null, outline: getComputedStyle(at).outlineStyle}; }"""


def why_not() -> str | None:
    """Why no page can be opened here; None where one can."""
    if PROGRAM.exists():
        return None
    return f"no Chromium at {PROGRAM}; install Debian's chromium, or set EVENRANK_CHROMIUM"


def required() -> bool:
    """Whether a missing Chromium is a failure: in CI, and where somebody says so."""
    said = (os.environ.get("CI"), os.environ.get("EVENRANK_BROWSER"))
    return said[0] == "true" or said[1] == "required"


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser with a fresh profile that keeps to itself."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=PROGRAM,
            args=[*_QUIET],
            # Chromium refuses to build its sandbox for root.
            chromium_sandbox=os.geteuid() != 0,
        )
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Watched:
    """An open page, and what it did that no page may do."""

    page: Page
    said: list[str] = field(default_factory=list)

    def wait(self) -> None:
        """Until all charts are drawn, or the page says that they cannot be."""
        ended = "html:is([data-ready=yes], [data-ready=failed])"
        self.page.wait_for_selector(ended, state="attached", timeout=20_000)

    def faults(self) -> list[str]:
        """Errors, dialogs, requests, breaches of the content policy, and scripts from data."""
        pwned = self.page.evaluate("() => window.pwned === undefined ? [] : ['a script of data']")
        return [*self.said, *pwned, *self.page.evaluate("() => window.violations ?? []")]

    def not_drawn(self) -> list[str]:
        """Sections that are shown and hold nothing, or a chart without a line."""
        found: list[str] = self.page.evaluate(_NOT_DRAWN)
        return found

    def touching(self) -> list[str]:
        """Texts of charts that lie on each other."""
        found: list[str] = self.page.evaluate(_TOUCHING)
        return found

    def overflow(self, width: int) -> int:
        """Pixels by which the page is wider than a window of ``width``."""
        self.page.set_viewport_size({"width": width, "height": 900})
        return int(
            self.page.evaluate(
                "() => Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
                " - document.documentElement.clientWidth"
            )
        )

    def barriers(self) -> list[str]:
        """Serious and critical findings of axe-core, and where they are."""
        found = Axe().run(self.page).response["violations"]
        return [
            f"{each['id']}: {each['help']}: {node['target']} {node['html'][:200]}"
            for each in found
            if each["impact"] in ("serious", "critical")
            for node in each["nodes"][:3]
        ]

    def tabbed(self, most: int = 5000) -> Iterator[dict[str, Any]]:
        """What Tab reaches, in order, until focus leaves the page."""
        for _ in range(most):
            self.page.keyboard.press("Tab")
            at = self.page.evaluate(_FOCUSED)
            if at is None:
                return
            yield at


@contextmanager
def opened(
    browser: Browser,
    file: Path,
    *,
    scheme: Scheme = "light",
    width: int = 1280,
    scripts: bool = True,
    at: datetime | None = None,
    ready: bool = True,
) -> Iterator[Watched]:
    """The page in ``file``, in a profile of its own; ``at`` is what its clock shows.

    Goes on when it says that it is ``ready``; without scripts, when it has loaded.
    """
    context = browser.new_context(
        color_scheme=scheme,
        viewport={"width": width, "height": 900},
        java_script_enabled=scripts,
        timezone_id="UTC",
        locale="en-GB",
    )
    try:
        page = context.new_page()
        watched = Watched(page)
        _watch(watched, file.resolve().as_uri())
        if at is not None:
            page.clock.set_fixed_time(at)
        page.goto(file.resolve().as_uri())
        if scripts and ready:
            watched.wait()
        yield watched
    finally:
        context.close()


def _watch(watched: Watched, own: str) -> None:
    said = watched.said

    def console(message: ConsoleMessage) -> None:
        if message.type == "error":
            said.append(f"console: {message.text}")

    def dialog(shown: Dialog) -> None:
        said.append(f"dialog: {shown.message}")
        shown.dismiss()

    def route(asked: Route) -> None:
        url = asked.request.url
        if url.split("#")[0] == own:
            asked.continue_()
        else:
            said.append(f"request: {url[:200]}")
            asked.abort()

    page = watched.page
    page.on("console", console)
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("dialog", dialog)
    page.on("popup", lambda other: said.append(f"window: {other.url}"))
    page.route("**/*", route)
    page.add_init_script(_LISTEN)
