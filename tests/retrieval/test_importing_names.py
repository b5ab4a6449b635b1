"""Names that would act on a terminal, and paths that lead to no file."""

import os

import pytest
from django.core.management import CommandError, call_command

from retrieval.corpus.models import Image, Species
from tests.retrieval.making import jpeg

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


def test_control_characters_of_names_are_refused_and_never_printed(tmp_path, capsys):
    root = tmp_path / "set\x1b[2J"
    for name in (
        "Rana temporaria",
        "Rana\ntemporaria",
        "00019_Animalia_Chor\x07data_Amphibia_Anura_Ranidae_Rana_temporaria",
    ):
        (root / name).mkdir(parents=True)
        (root / name / "a.jpg").write_bytes(jpeg())
    (root / "Rana temporaria/b\x1b]0;c\x07.jpg").write_bytes(jpeg("red"))
    with pytest.raises(CommandError, match=r"name holds control characters: 'set\\x1b\[2J'"):
        call_command("import_images", str(root), "--quiet")
    assert not Image.objects.exists()
    assert not Species.objects.exists()
    capsys.readouterr()
    with pytest.raises(CommandError, match="3 refused"):
        call_command("import_images", str(root), "--quiet", "--dataset", "set")
    told = capsys.readouterr().out
    assert not any(one in told for one in "\x1b\x07")
    for name in (r"Rana\ntemporaria: folder", r"Chor\x07data", r"b\x1b]0;c\x07.jpg: file_name"):
        assert name in told
    assert [one.file_name for one in Image.objects.all()] == ["Rana temporaria/a.jpg"]
    assert Species.objects.count() == 1


def test_a_pipe_is_refused_by_name(tmp_path):
    os.mkfifo(tmp_path / "train.json")
    with pytest.raises(CommandError, match=r"train\.json: This is neither a file nor a folder"):
        call_command("import_images", str(tmp_path / "train.json"), "--quiet")
