"""Small batches have small files, and large ones are not made larger by it."""

from pathlib import Path

import pytest
from stores import DAY, audit, deliver, random_lists, ranking

import pipeline.runs.steps
from pipeline.history.forget import forget_rows
from pipeline.integrity.verify import verify
from pipeline.publish.copy import publish
from pipeline.runs.batches import run_batch
from pipeline.settings.audit import Settings
from pipeline.store.batch_files import DATABASE, opened
from pipeline.store.paths import store_of
from pipeline.store.sessions import SMALL_BLOCKS, block_size_of

USUAL = 262_144


def block_size(settings: Settings) -> int:
    with opened(settings, store_of(settings).batch(DAY), read_only=True) as connection:
        return block_size_of(connection, DATABASE)


@pytest.mark.slow
def test_a_batch_of_72_rows_takes_half_a_megabyte(tmp_path: Path) -> None:
    settings = audit(tmp_path, slices=["device"])
    deliver(tmp_path, [row for n in range(12) for row in ranking(f"{n}", "FMFMFM", device="m")])
    assert run_batch(settings, DAY).rows_accepted == 72
    assert block_size(settings) == SMALL_BLOCKS
    assert store_of(settings).batch(DAY).stat().st_size < 550_000
    publish(settings)
    assert verify(settings).problems == []


@pytest.mark.slow
@pytest.mark.parametrize("little", [True, False])
def test_a_file_keeps_its_blocks_until_it_is_made_anew(
    little: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = audit(tmp_path, metrics=["EXP"], privacy={"keep_rows_days": 1})
    deliver(tmp_path, random_lists(1))
    rows = (tmp_path / "logs" / DAY / "part.csv").stat().st_size
    expected = SMALL_BLOCKS if little else USUAL
    with monkeypatch.context() as patch:
        patch.setattr(pipeline.runs.steps, "_LITTLE_BYTES", rows + little)
        run_batch(settings, DAY)
    # Its rows were too old at once, and it was written anew without them.
    assert forget_rows(settings) == []
    assert block_size(settings) == expected
    assert run_batch(settings, DAY, from_counts=True, force=True).status == "done"
    assert block_size(settings) == expected
    publish(settings)
    assert verify(settings).problems == []
