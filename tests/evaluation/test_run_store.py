"""Stored rankings: equal bytes, whole or not at all, read as they were written."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from evaluation.runs.store import RunDamaged, load_run, save_run
from evaluation.scoring.run_files import Ranking

pytestmark = pytest.mark.pure


def ranking(*image_ids: int) -> Ranking:
    return Ranking(
        image_ids=np.array(image_ids, dtype=np.int64),
        scores=np.linspace(1, 0.1, len(image_ids)),
    )


@pytest.fixture(autouse=True)
def _below_the_state_folder(settings, tmp_path):
    settings.VAR_DIR = tmp_path


RUN = {7: ranking(3, 1, 2), 2: ranking(9), 5: ranking()}


def test_what_is_written_is_read(tmp_path):
    checksum = save_run(tmp_path / "runs" / "1.npz", RUN)
    path = tmp_path / "runs" / "1.npz"
    assert checksum == hashlib.sha256(path.read_bytes()).hexdigest()
    read = load_run(path)
    assert list(read) == [2, 5, 7]
    for query_id, expected in RUN.items():
        assert read[query_id].image_ids.tolist() == expected.image_ids.tolist()
        assert read[query_id].scores.tolist() == expected.scores.tolist()
    assert not read[7].image_ids.flags.writeable
    # As the documentation has it.
    with np.load(path) as arrays:
        assert arrays["query_ids"].tolist() == [2, 5, 7]
        assert arrays["offsets"].tolist() == [0, 1, 1, 4]
        assert arrays["image_ids"].tolist() == [9, 3, 1, 2]
        assert arrays["scores"].dtype == np.float64
    save_run(path, {})
    assert load_run(path) == {}


def test_equal_rankings_give_equal_bytes_in_any_order_of_the_queries(tmp_path):
    save_run(tmp_path / "1.npz", RUN)
    save_run(tmp_path / "2.npz", dict(reversed(RUN.items())))
    assert (tmp_path / "1.npz").read_bytes() == (tmp_path / "2.npz").read_bytes()


def test_what_is_replaced_stays_readable_to_who_reads_it(tmp_path):
    save_run(tmp_path / "1.npz", RUN)
    before = load_run(tmp_path / "1.npz")
    save_run(tmp_path / "1.npz", {7: ranking(8, 9)})
    assert before[7].image_ids.tolist() == [3, 1, 2]
    assert load_run(tmp_path / "1.npz")[7].image_ids.tolist() == [8, 9]
    assert [path.name for path in tmp_path.iterdir()] == ["1.npz"]


def test_a_failed_write_leaves_the_old_file_alone(tmp_path):
    save_run(tmp_path / "1.npz", RUN)
    before = (tmp_path / "1.npz").read_bytes()
    with pytest.raises(TypeError):
        save_run(tmp_path / "1.npz", {1: Ranking(image_ids=None, scores=None)})  # type: ignore[arg-type]
    assert (tmp_path / "1.npz").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["1.npz"]


@pytest.mark.parametrize("damage", ["gone", "cut", "other"])
def test_lost_and_damaged_files_are_named(tmp_path: Path, damage):
    path = tmp_path / "1.npz"
    save_run(path, RUN)
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:200])
    else:
        np.savez(path.open("wb"), other=np.arange(3))
    with pytest.raises(RunDamaged, match=r"1\.npz.*restore it from a backup"):
        load_run(path)
