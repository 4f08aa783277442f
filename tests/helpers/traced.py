"""Computes batches and tells which functions of the project ran, and what these name.

``python traced.py BATCH SETTINGS ...`` prints [file, line, names] of each function, those that
ran while modules were imported included; names are [module, name] of what it reads.
"""

import dis
import json
import sys
import threading
from importlib import import_module
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

_PACKAGES = ("metrics", "schemas", "pipeline")
_ran: dict[CodeType, dict[str, Any]] = {}
_seen: set[int] = set()


def _note(frame: FrameType, event: str, argument: object) -> None:
    code = frame.f_code
    if id(code) in _seen:
        return
    if code.co_name.startswith("<") and _imported(frame):
        # Part of a constant, which counts if somebody reads it.
        return
    _seen.add(id(code))
    if str(frame.f_globals.get("__name__")).split(".")[0] in _PACKAGES:
        _ran[code] = frame.f_globals


def _imported(frame: FrameType | None) -> bool:
    while frame and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return frame is not None and frame.f_globals["__name__"] != "__main__"


def _read(code: CodeType, given: dict[str, Any]) -> list[list[str]]:
    """Where each global that the function reads was defined, or at least under which name."""
    names = {each.argval for each in dis.get_instructions(code) if each.opname == "LOAD_GLOBAL"}
    found = []
    for name in sorted(names & set(given)):
        module, qualified = (
            getattr(given[name], each, None) for each in ("__module__", "__qualname__")
        )
        known = str(module).split(".")[0] in _PACKAGES and qualified is not None
        found.append([module, qualified.split(".")[0]] if known else [given["__name__"], name])
    return found


def _main() -> None:
    for name in ("duckdb", "pandera.pandas", "pyarrow.parquet", "pydantic", "scipy.stats", "yaml"):
        import_module(name)
    sys.settrace(_note)
    threading.settrace(_note)
    from pipeline.runs.steps import ingest_batch, measure_batch, score_batch
    from pipeline.settings.load import load_settings

    batch, *files = sys.argv[1:]
    for settings in map(load_settings, map(Path, files)):
        ingest_batch(settings, batch, "traced")
        measure_batch(settings, batch, "traced")
        assert score_batch(settings, batch, "traced")
    sys.settrace(None)
    functions = [
        [code.co_filename, code.co_firstlineno, _read(code, given)]
        for code, given in _ran.items()
        # Bodies of modules and classes run with whatever imports them, and so does __getattr__ of a
        # package; dataclasses make functions without a file.
        if code.co_flags & CO_OPTIMIZED
        and code.co_qualname != "__getattr__"
        and code.co_filename.endswith(".py")
    ]
    print(json.dumps(functions))


if __name__ == "__main__":
    _main()
