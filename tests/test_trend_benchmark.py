"""The script behind the tables of docs/trends.md runs, and fills every marker."""

import importlib.util
import re
import shutil
from pathlib import Path

from click.testing import CliRunner

ROOT = Path(__file__).parent.parent
TABLE = re.compile(r"<!-- measured: ([a-z -]+) -->\n(.*?)<!-- /measured -->", re.DOTALL)


def test_quick_measurements_fill_the_document(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("charts", ROOT / "benchmarks" / "charts.py")
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    page = tmp_path / "trends.md"
    shutil.copy(ROOT / "docs" / "trends.md", page)
    answer = CliRunner().invoke(script.main, ["--quick", "--document", str(page)])
    assert answer.exit_code == 0, answer.output
    before = TABLE.findall((ROOT / "docs" / "trends.md").read_text("utf-8"))
    after = TABLE.findall(page.read_text("utf-8"))
    assert [name for name, _ in after] == [name for name, _ in before]
    for (name, old), (_, new) in zip(before, after, strict=True):
        assert old != new, name
        heads = [re.sub(r"\d+", "N", table.splitlines()[0]) for table in (old, new)]
        assert heads[0] == heads[1], f"{name}: other columns"
