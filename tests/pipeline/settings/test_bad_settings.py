"""Settings files as they may come: what stands there is taken or explained, and nothing runs."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from command import evenrank

from pipeline.errors import SettingsError
from pipeline.settings.audit import Settings
from pipeline.settings.load import load_settings, settings_from

GOOD = "attributes: [gender]\n"
LAUGHS = "a: &a [x, x, x]\n" + "".join(
    f"{chr(98 + at)}: &{chr(98 + at)} [{', '.join([f'*{chr(97 + at)}'] * 9)}]\n" for at in range(20)
)


def loaded(folder: Path, data: str | bytes) -> Settings:
    path = folder / "audit.yaml"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return load_settings(path)


REFUSED: list[tuple[str, str | bytes, str]] = [
    ("billion laughs", LAUGHS + GOOD, "a: unknown setting"),
    ("laughs for a list", LAUGHS + "attributes: *g\n", "and 63 more"),
    ("a list in itself", "attributes: &x [gender, *x]\n", "attributes.1.1"),
    ("a mapping in itself", GOOD + "targets: &x {gender: *x}\n", "targets.gender.gender"),
    ("deep lists", "attributes: " + "[" * 3000 + "]" * 3000, "line 1: is nested too deeply"),
    ("deep mappings", "a: " + "{a: " * 3000 + "1" + "}" * 3000, "line 1: is nested too deeply"),
    ("deep blocks", "".join(" " * at + "a:\n" for at in range(900)), "is nested too deeply"),
    ("a large file", b"#" * 1_000_001, "larger than 1,000,000 bytes"),
    ("no such month", GOOD + "schedule: {start: 2026-13-45}\n", "line 2: is no date"),
    ("year 0", GOOD + "schedule: {start: 0000-01-01}\n", "line 2: is no date"),
    ("year 9999", GOOD + "schedule: {start: 9999-12-31}\n", "lies before 1970 or after"),
    ("no such offset", GOOD + "schedule: {start: 2026-01-01T10:00:00+99:99}\n", "is no date"),
    ("a number of 5000 digits", GOOD + f"threads: {'9' * 5000}\n", "line 2: is no whole number"),
    ("a number too large", GOOD + f"threads: {'9' * 30}\n", "line 2: is a number too large"),
    ("too many threads", GOOD + "threads: 100000\n", "threads"),
    ("hours without end", GOOD + "schedule: {deadline_hours: 99999999}\n", "deadline_hours"),
    ("a tag and no number", "attributes: !!int x\n", "line 1: is no whole number"),
    ("a tag and nothing", "attributes: !!int ''\n", "line 1: is no whole number"),
    ("a tag and no truth", "attributes: !!bool x\n", "line 1: is no true or false"),
    ("a tag and no date", "attributes: !!timestamp x\n", "line 1: is no date"),
    ("a tag and no fraction", "attributes: !!float x\n", "line 1: is no number"),
    ("a set", "attributes: !!set {a, b}\n", "line 1: could not determine a constructor"),
    ("bytes", "attributes: !!binary aGVsbG8=\n", "line 1: could not determine a constructor"),
    ("an object", "attributes: !!python/object:os.system {}\n", "python/object"),
    ("a list for a key", "? [a, b]\n: 1\n", "line 1: found unhashable key"),
    ("a key twice", GOOD + "threads: 1\nthreads: 2\n", "line 3: threads stands twice"),
    ("half a character", 'attributes: ["\\ud800"]\n', "line 1: holds a character that is no text"),
    ("a zero", GOOD + 'store: "a\\0b"\n', "line 2: holds a character that is no text"),
    ("a zero byte", GOOD.encode() + b"\0", "special characters are not allowed"),
    ("UTF-16", GOOD.encode("utf-16"), "cannot be read as UTF-8 text"),
    ("a binary file", bytes(range(256)), "cannot be read as UTF-8 text"),
    ("a name that is a truth", GOOD + "targets: {gender: {no: 1.0}}\n", "write the name in quotes"),
    ("a day for a text", "attributes: [2026-01-01]\n", "attributes.0.0"),
    ("a long text", GOOD + f"schedule: {{timezone: {'x' * 9000}}}\n", "schedule.timezone"),
    ("a long label", GOOD + f"metrics: [{'E' * 9000}]\n", "metrics: there is no metric"),
    ("3000 problems", GOOD + "".join(f"z{at}: 1\n" for at in range(3000)), "and 2,960 more"),
    ("a plug-in", GOOD + "metrics: ['os:system']\n", "metrics: 'os:system' is not a label"),
    ("memory of words", GOOD + "memory_limit: ...GB\n", "memory_limit: write it as in 8GB"),
    ("memory and more", GOOD + 'memory_limit: "1GB; SET x = 1"\n', "memory_limit: write it as"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("name", "data", "words"), REFUSED, ids=[name for name, *_ in REFUSED])
def test_settings_that_are_refused(
    tmp_path: Path, name: str, data: str | bytes, words: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, data)
    said = str(caught.value)
    assert said.startswith(str(tmp_path / "audit.yaml")), name
    assert words in said
    assert len(said) < 15_000


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        "attributes: &x [gender]\nslices: [device]\n",
        "attributes: [gender]\nranks: {<<: {start: 0}, gaps: keep}\n",
        "{attributes: [gender]}",
        GOOD + "memory_limit: 0.5GB\n",
        GOOD + "memory_limit: 50%\n",
    ],
)
def test_settings_that_are_taken(tmp_path: Path, text: str) -> None:
    assert loaded(tmp_path, text).attribute_names == ("gender",)


@pytest.mark.parametrize("memory", ["0MB", "0.0001%", "0.001KB", "900%", "99999999999TB"])
def test_memory_that_cannot_be(tmp_path: Path, memory: str) -> None:
    log = tmp_path / "log.csv"
    log.write_text("list_id,item_id,rank,gender\na,x,1,F\na,y,2,M\n")
    config = tmp_path / "audit.yaml"
    config.write_text(GOOD + f"memory_limit: {memory}\n")
    result = evenrank("check", log, "--config", config)
    assert result.exit_code == 1
    assert result.stderr.startswith("evenrank: memory_limit: ")


def _folder(path: Path) -> None:
    path.mkdir()


def _link_to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_folder, "is a directory"),
        (_link_to("settings.yaml"), "symbolic links"),
        (_link_to("gone.yaml"), "no such file"),
        (_link_to("/dev/zero"), "larger than"),
        (_link_to("/proc/self/environ"), "settings.yaml"),
    ],
    ids=["folder", "circle", "dangling", "device", "environment"],
)
def test_what_is_no_settings_file(
    tmp_path: Path, make: Callable[[Path], None], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "SECRET_OF_A_TEST", "wormwood")
    config = tmp_path / "settings.yaml"
    make(config)
    result = evenrank("run", "--batch", "2026-01-05", "--config", config)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "wormwood" not in result.output


@pytest.mark.parametrize("name", ["\udcff", "a\ud800", "x\0"])
def test_names_are_text(name: str) -> None:
    with pytest.raises(SettingsError, match="cannot name a column"):
        settings_from({"attributes": [name]}, folder=Path())
