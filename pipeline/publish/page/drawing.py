"""What draws the page: Vega as one script, and the charts; both the same for every audit.

Making them takes about two seconds, so they are kept beside the compiled code that they are made
by, as long as that code and the packages stay the same.

Not here: the charts (``charts``), and the data that they draw.
"""

import json
import os
import sys
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pipeline.formatting import looks

_HERE = Path(__file__).parent
_SOURCES = (Path(__file__), _HERE / "charts.py", Path(looks.__file__))
_PACKAGES = ("altair", "vl-convert-python")


@dataclass(frozen=True)
class Drawing:
    """``library`` is Vega, Vega-Lite and their embedding; ``charts`` are Vega-Lite by name."""

    library: str
    charts: dict[str, Any]


@cache
def drawing() -> Drawing:
    """The script and the charts, made now or kept from before."""
    kept = _HERE / "__pycache__" / f"drawing.{_key()}.json"
    try:
        return Drawing(**json.loads(kept.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        found = _made()
    if not sys.dont_write_bytecode:
        _keep(kept, json.dumps(asdict(found)))
    return found


def _key() -> str:
    texts = [source.read_bytes() for source in _SOURCES]
    return sha256(b"\0".join([*texts, *(version(name).encode() for name in _PACKAGES)])).hexdigest()


def _made() -> Drawing:
    import vl_convert

    from pipeline.publish.page.charts import specs

    return Drawing(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"), specs())


def _keep(path: Path, text: str) -> None:
    """Best effort: an installation that cannot be written to makes them anew each time."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(exist_ok=True)
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
