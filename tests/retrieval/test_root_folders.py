"""Files where they are, below a folder: nothing outside of it is read."""

import os

import pytest

from retrieval.images import roots as module
from retrieval.images.roots import (
    ImageGone,
    RootRefused,
    RootUnavailable,
    root_files,
)

pytestmark = pytest.mark.pure


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "root/train/frogs").mkdir(parents=True)
    (tmp_path / "root/train/frogs/1.jpg").write_bytes(b"frog")
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    return tmp_path / "root"


def read(folder, name):
    return root_files(str(folder)).read(name)


def test_a_file_below_a_folder_is_read(folder):
    assert read(folder, "train/frogs/1.jpg") == b"frog"
    assert root_files(str(folder)).near


def test_names_of_any_script_and_blanks_are_names(folder):
    for name in ("train/Müller 狐.jpg", "train/…", "train/ 1 .jpg"):
        (folder / name).write_bytes(name.encode())
        assert read(folder, name) == name.encode()


@pytest.mark.parametrize(
    "name", ["../secret.jpg", "train/../../secret.jpg", "/etc/passwd", "", ".", "a\0b", "train/.."]
)
def test_a_name_does_not_leave_the_folder(folder, name):
    with pytest.raises(ImageGone, match="leads out"):
        read(folder, name)


def test_a_link_is_followed_within_the_folder_and_not_out_of_it(folder):
    (folder / "inside.jpg").symlink_to("train/frogs/1.jpg")
    (folder / "out.jpg").symlink_to("../secret.jpg")
    (folder / "up").symlink_to("..")
    (folder / "nowhere.jpg").symlink_to("../nothing.jpg")
    (folder / "round").symlink_to("round")
    assert read(folder, "inside.jpg") == b"frog"
    # Whether anything is there is not told.
    for name in ("out.jpg", "up/secret.jpg", "up/root/../secret.jpg", "nowhere.jpg", "up/none.jpg"):
        with pytest.raises(ImageGone, match="leads out"):
            read(folder, name)
    with pytest.raises(ImageGone):
        read(folder, "round")


def test_a_file_that_becomes_a_link_out_is_refused_when_it_is_read(folder):
    assert read(folder, "train/frogs/1.jpg") == b"frog"
    (folder / "train/frogs/1.jpg").unlink()
    (folder / "train/frogs/1.jpg").symlink_to(folder.parent / "secret.jpg")
    with pytest.raises(ImageGone, match="leads out"):
        read(folder, "train/frogs/1.jpg")


def test_the_folder_itself_may_be_a_link(folder, tmp_path):
    (tmp_path / "data").symlink_to(folder)
    assert read(tmp_path / "data", "train/frogs/1.jpg") == b"frog"
    assert root_files(f"{tmp_path}/data/").location == str(tmp_path / "data")


def test_what_is_no_file_is_gone_and_nobody_waits_for_it(folder):
    os.mkfifo(folder / "pipe.jpg")
    for name, why in (("pipe.jpg", "no file"), ("train", "gone"), ("train/2.jpg", "gone")):
        with pytest.raises(ImageGone, match=why) as raised:
            read(folder, name)
        assert not isinstance(raised.value, RootUnavailable)
        assert name not in str(raised.value)
    with pytest.raises(ImageGone, match="gone"):
        read(folder, "x" * 300)


def test_a_file_that_is_too_large_is_not_read(folder, monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 3)
    with pytest.raises(ImageGone, match="has 4 bytes; at most 3"):
        read(folder, "train/frogs/1.jpg")


def test_a_folder_that_is_away_may_come_back(folder):
    folder.rename(folder.with_name("unmounted"))
    with pytest.raises(RootUnavailable, match="isn't there now"):
        read(folder, "train/frogs/1.jpg")
    folder.with_name("unmounted").rename(folder)
    assert read(folder, "train/frogs/1.jpg") == b"frog"


@pytest.mark.parametrize(
    "location",
    ["photos", "", "./photos", "http://a/b", "s3://", "s3://A_b/c", "s3://abc/x/../y", "/a\0b",
     "s3:///x", "/" + "x" * 1000],
)  # fmt: skip
def test_what_is_neither_a_folder_nor_a_bucket_is_refused(location):
    with pytest.raises(RootRefused):
        root_files(location)


def test_one_place_has_one_location(folder):
    wanted = str(folder)
    for written in (f"{folder}/", f"{folder}/train/..", f"{folder}//."):
        assert root_files(written).location == wanted
    assert {root_files(one).location for one in ("s3://abc/", "s3://abc")} == {"s3://abc"}
    assert root_files("s3://abc/inat/train//").location == "s3://abc/inat/train"
