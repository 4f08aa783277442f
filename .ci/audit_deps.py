"""Whether a package of the lock has a known vulnerability.

    make audit-deps [ARGS=--strict]

pip-audit asks a public service; this reads its answer.  Exit 0: nothing is known against what is
locked.  Exit 1: something is, or pip-audit broke.  A service that cannot be reached, or that does
not know all packages, is no all-clear: it is said in a line of its own, and is exit 0 so that work
without a network goes on; with ``--strict`` it is exit 1 too.
"""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from locked import LOCK, ROOT, Pin, pins_of

TOOLS = ROOT / ".venv-lock" / "bin" / "python"
SECONDS = 180
OFFLINE = re.compile(
    r"Connection(Error|Pool)|[Cc]ould not connect|NameResolution|Timeout|timed out|ProxyError"
    r"|SSLError|HTTPError|ServiceError|Max retries"
)


@dataclass(frozen=True)
class Said:
    """What pip-audit said; ``report`` is None where it ended without one."""

    report: Mapping[str, Any] | None
    errors: str


@dataclass(frozen=True)
class Result:
    """Lines to print, whether something is wrong, and whether all packages were looked at."""

    lines: Sequence[str]
    failed: bool
    complete: bool


def asked(lock: Path) -> Said:
    """The answer of pip-audit on a lock.  Nothing is installed or resolved for it."""
    command = [
        str(TOOLS), "-m", "pip_audit", "--requirement", str(lock), "--require-hashes",
        "--disable-pip", "--vulnerability-service", "osv", "--format", "json", "--desc", "off",
        "--aliases", "on", "--progress-spinner", "off", "--timeout", "10",
    ]  # fmt: skip
    if not (TOOLS.parent / ".." / ".ready").exists():
        return Said(None, "ConnectionError: pip-audit is not installed, see above")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Said(None, f"Timeout: no answer within {SECONDS} s")
    try:
        return Said(json.loads(done.stdout), done.stderr)
    except ValueError:
        return Said(None, done.stderr)


def judged(said: Said, pins: Sequence[Pin]) -> Result:
    """What an answer means for the packages that are locked for this platform."""
    if said.report is None:
        reason = (said.errors.strip().splitlines() or ["it said nothing"])[-1]
        if OFFLINE.search(said.errors):
            lines = [
                "NOT AUDITED: no answer from the service that knows vulnerabilities.",
                f"  {reason}",
            ]
            return Result(lines, False, False)
        return Result([f"pip-audit broke, and nothing is known: {reason}"], True, False)
    of = {each["name"]: each for each in said.report["dependencies"]}
    looked = {name for name, each in of.items() if "skip_reason" not in each}
    left = sorted({pin.name for pin in pins if pin.here()} - looked)
    lines, bad = [], sorted(name for name in looked if of[name]["vulns"])
    for name in bad:
        for known in of[name]["vulns"]:
            fixed = ", ".join(known["fix_versions"]) or "no version yet"
            ids = ", ".join([known["id"], *known.get("aliases", [])])
            lines.append(f"  {name} {of[name]['version']}: {ids}; fixed in {fixed}")
    if bad:
        upgrade = " ".join(f"--upgrade-package {name}" for name in bad)
        lines = [
            f"Known vulnerabilities in {len(bad)} of {len(looked)} packages:",
            *lines,
            f"Take the fixed versions: make lock ARGS='{upgrade}'",
        ]
    elif not left:
        lines = [f"{len(looked)} packages: no known vulnerability."]
    if left:
        some = ", ".join(left[:5]) + (" ..." if len(left) > 5 else "")
        lines.append(f"NOT AUDITED: {len(left)} packages, unknown to the service: {some}")
    return Result(lines, bool(bad), not left)


def main() -> None:
    pins = pins_of(LOCK.read_text("utf-8"))
    result = judged(asked(LOCK), pins)
    print(*result.lines, sep="\n")
    strict = "--strict" in sys.argv[1:]
    sys.exit(result.failed or (strict and not result.complete))


if __name__ == "__main__":
    main()
