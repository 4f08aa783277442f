"""The scripts behind measured tables run, and fill every marker of their page."""

import importlib
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from places import ROOT

TABLE = re.compile(r"<!-- measured: ([^>]+) -->\n(.*?)<!-- /measured -->", re.DOTALL)


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("charts", "trends"),
        ("intervals", "evidence"),
        ("noise", "noise"),
        pytest.param("explain", "explaining", marks=pytest.mark.slow),
        pytest.param("windows", "windows", marks=pytest.mark.slow),
    ],
)
def test_quick_measurements_fill_the_page(
    name: str, page: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    script = importlib.import_module(name)
    committed = ROOT / "docs" / f"{page}.md"
    copy = Path(shutil.copy(committed, tmp_path))
    answer = CliRunner().invoke(script.main, ["--quick", "--document", str(copy)])
    assert answer.exit_code == 0, answer.output
    before, after = (TABLE.findall(each.read_text("utf-8")) for each in (committed, copy))
    assert [title for title, _ in after] == [title for title, _ in before]
    for (title, old), (_, new) in zip(before, after, strict=True):
        assert old != new, title
        heads = [re.sub(r"\d+", "N", table.splitlines()[0]) for table in (old, new)]
        assert heads[0] == heads[1], f"{title}: other columns"
