import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from annotator.environment import secret_key

pytestmark = pytest.mark.pure


def test_the_first_call_makes_a_key_that_only_its_owner_reads(tmp_path):
    path = tmp_path / "new" / "secret_key"
    key = secret_key(path)
    assert len(key) >= 50
    assert path.read_text() == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [child.name for child in path.parent.iterdir()] == ["secret_key"]


def test_later_calls_return_the_same_key(tmp_path):
    assert secret_key(tmp_path / "key") == secret_key(tmp_path / "key")
    assert secret_key(tmp_path / "key") != secret_key(tmp_path / "other")


def test_callers_at_the_same_moment_agree(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: secret_key(tmp_path / "key"), range(40)))
    assert len(keys) == 1
