"""What two sources must have in common to have one digest."""

from pathlib import Path
from textwrap import dedent

import pytest

from pipeline.version.digest import digest, forms

B = """
def f(x):
    return x + 1

def g(x):
    return x + 2
"""
F = "from pipeline.b import f\n"


def of(folder: Path, a: str, b: str = B) -> str:
    """The digest of what ``start`` in module ``a`` reaches."""
    (folder / "pipeline").mkdir(parents=True, exist_ok=True)
    for name, text in {"__init__": "", "a": a, "b": b}.items():
        (folder / "pipeline" / f"{name}.py").write_text(dedent(text), "utf-8")
    return digest(forms(folder, ["pipeline.a.start"]))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (F + "def start(): f(1)", "from pipeline import b\ndef start(): b.f(1)"),
        (F + "def start(): f(1)", "from .b import f as h\ndef start(): h(1)"),
        (F + "def start(): f(1)", "import pipeline.b\ndef start(): pipeline.b.f(1)"),
        (F + "def start(): f(1)", "def start():\n    from pipeline.b import f as h\n    h(1)"),
        (F + "def start(): f(1)", "def start(): f(1)\ndef f(x):\n    return x + 1"),
        (F + "def start(): f(1).y", "from pipeline import b\ndef start(): b.f(1).y"),
        (
            "import numpy as np\ndef start(): np.sum(1)",
            "from numpy import sum\ndef start(): sum(1)",
        ),
        (
            "from numpy import linalg as la\ndef start(): la.norm(1)",
            "import numpy.linalg\ndef start(): numpy.linalg.norm(1)",
        ),
        ("def start(): pass", 'def start():\n    """Nothing."""'),
        ("class start:\n    x: int = 1", 'class start:\n    x: int = 1\n    """One."""'),
        (
            "def start(): return 'a' 'b'",
            "def start():\n    # Both.\n    return (\n        'ab'\n    )",
        ),
        ("def start(x): return f'{x}a' f'b'", "def start(x): return f'{x}ab'"),
        ("def start(x): return u'a'", "def start(x): return 'a'"),
        (
            "T = 1\ndef start(): return T",
            "__all__ = ['start']\nU = 2\nT = 1\ndef start(): return T",
        ),
        (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    "
            + F
            + "def start(x: f): ...",
            F + "def start(x: f): pass",
        ),
    ],
)
def test_the_same_in_other_words(tmp_path: Path, one: str, other: str) -> None:
    assert of(tmp_path / "one", one) == of(tmp_path / "other", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (F + "def start(): f(1)", "from pipeline.b import g as f\ndef start(): f(1)"),
        (F + "def start(f): f(1)", F + "def start(g): f(1)"),
        (F + "def start(*f): f(1)", F + "def start(*g): f(1)"),
        (F + "def start(): return f", F + "def start():\n    f = 1\n    return f"),
        (
            F + "def start(): return [f for g in ()]",
            F + "def start(): return [f for f in ()]",
        ),
        (F + "def start(): return lambda g: f", F + "def start(): return lambda f: f"),
        (
            F + "def start(x):\n    for g in x: return f",
            F + "def start(x):\n    for f in x: return f",
        ),
        (
            F + "def start(x):\n    match x:\n        case [g]: return f",
            F + "def start(x):\n    match x:\n        case [f]: return f",
        ),
        (
            F + "def start():\n    try: ...\n    except E as g: return f",
            F + "def start():\n    try: ...\n    except E as f: return f",
        ),
        (
            F + "def start(x): return [(g := y) for y in x], f",
            F + "def start(x): return [(f := y) for y in x], f",
        ),
        # What a class binds is not what its methods read.
        (
            "f = 1\nclass start:\n    f = 3\n    def g(self): return f",
            "f = 2\nclass start:\n    f = 3\n    def g(self): return f",
        ),
        # A default is read outside.
        ("f = 1\ndef start(f=f): ...", "f = 2\ndef start(f=f): ..."),
        (
            "def start(x):\n    def g():\n        x = 2\n    return x, g",
            "def start(x):\n    def g():\n        nonlocal x\n        x = 2\n    return x, g",
        ),
        ("x = 1\ndef start():\n    x = 2", "x = 1\ndef start():\n    global x\n    x = 2"),
        (
            "from math import sin as f\ndef start(): f(1)",
            "from math import cos as f\ndef start(): f(1)",
        ),
        (
            "import numpy as m\ndef start(): m.sin(1)",
            "import math as m\ndef start(): m.sin(1)",
        ),
        ("A, B = 1, 2\ndef start(): return A", "A, B = 1, 2\ndef start(): return B"),
        ("A = [1]\ndef start(): return A", "A = [1]\nA += [2]\ndef start(): return A"),
        ("A = {}\ndef start(): return A", "A = {}\nA['x'] = 2\ndef start(): return A"),
        (
            "A = []\ndef start(): return A",
            "A = []\nfor x in (1,):\n    A.append(x)\ndef start(): return A",
        ),
        (
            "A = []\ndef start(): return A",
            "A = []\nwith open(0) as x:\n    A.append(x)\ndef start(): return A",
        ),
        (
            "if 1:\n    A = 1\nelse:\n    A = 2\ndef start(): return A",
            "if 1:\n    A = 1\nelse:\n    A = 3\ndef start(): return A",
        ),
        ("class start:\n    x: int", "class start:\n    x: float"),
        ("def start(x=1): ...", "def start(x=2): ..."),
        ("def start(): return 1", "def start(): return True"),
        ("def start(): return '1'", "def start(): return 1"),
        ("def start(): return 1.0", "def start(): return 1"),
        ("def start(x): return f'{x}a'", "def start(x): return f'a{x}'"),
        ("def start(x): return f'{x}'", "def start(x): return f'{x!r}'"),
        ("def start(x): return f'{x:1}'", "def start(x): return f'{x:2}'"),
        ("def start(x, z): return x().y, z", "def start(x, z): return x(), y, z"),
        ("def start(x): return {**x}", "def start(x): return {None: x}"),
        ("def start(*, x, y=1): ...", "def start(*, y, x=1): ..."),
        ("def start(x): return x.real", "def start(x): return x.imag"),
        ("@staticmethod\ndef start(x): ...", "def start(x): ..."),
        ("async def start(x): ...", "def start(x): ..."),
    ],
)
def test_something_else(tmp_path: Path, one: str, other: str) -> None:
    assert of(tmp_path / "one", one) != of(tmp_path / "other", other)


def test_only_what_is_reached_counts(tmp_path: Path) -> None:
    start = F + "def start(): return f(1)"
    assert of(tmp_path, start) == of(tmp_path, start, B.replace("2", "3"))
    assert of(tmp_path, start) != of(tmp_path, start, B.replace("1", "3"))


def test_a_module_that_is_passed_on_counts_as_a_whole(tmp_path: Path) -> None:
    start = "from pipeline import b\ndef start(): return vars(b)"
    assert of(tmp_path, start) != of(tmp_path, start, B.replace("2", "3"))


def test_definitions_may_name_each_other_in_circles(tmp_path: Path) -> None:
    start = F + "def start(x): return f(start(x - 1))\n"
    circle = "from pipeline.a import start\ndef f(x): return start(x)\n"
    assert of(tmp_path, start, circle) != of(tmp_path, start.replace("1", "2"), circle)


def test_of_what_is_left_out_the_name_counts(tmp_path: Path) -> None:
    for_f, for_g = F + "def start(): f(1)", "from pipeline.b import g\ndef start(): g(1)"
    found = []
    for text, body in ((for_f, B), (for_f, B.replace("1", "3")), (for_g, B)):
        of(tmp_path, text, body)
        found.append(digest(forms(tmp_path, ["pipeline.a.start"], {"f", "g"})))
    assert found[0] == found[1] != found[2]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match=r"pipeline\.a\.start"):
        of(tmp_path, "def begin(): ...")
