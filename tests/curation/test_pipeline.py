"""Whole curations: configurations, presets, the corpus' files, and the way into the application."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from curation.config import presets, read_config
from curation.tables import CurationRefused
from tests import ROOT
from tests.curation.archives import crypticbio, inaturalist, inaturalist_taxonomy

PHOTOS = ROOT.parent / "shared" / "photos"


def config(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "corpus.toml"
    path.write_text(text)
    return path


SOURCE = '[[sources]]\nkind = "inaturalist"\npath = "dump"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no"),
        ("sources = [", "Expected|Invalid|expected|invalid|Unclosed|unclosed"),
        (SOURCE.replace("inaturalist", "inat"), "source 1: kind must be one of gbif-archive"),
        (SOURCE + 'name = "x"', "source 1: name isn't a setting of inaturalist"),
        ('[[sources]]\npath = "dump"', "source 1: needs a kind and a path"),
        (SOURCE.replace("inaturalist", "camtrap-dp") + "blank = 1", "blank must be true or false"),
        ('preset = "inat25"\n' + SOURCE, "there is no “inat25”; there are crypticbio-common"),
        ('seed = "1"\n' + SOURCE, "seed: must be of the type int"),
        (SOURCE + "[filters]\nlicense = ['cc0']", "filters.license: isn't a setting.*“licenses”"),
        (SOURCE + "[sampling]\nper_species = true", "sampling.per_species: must be of the type"),
        ("filters = 3\n" + SOURCE, "filters: must be a table"),
    ],
)
def test_a_wrong_configuration_names_its_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CurationRefused, match=message):
        read_config(config(tmp_path, text))


def test_a_file_stands_over_its_preset(tmp_path: Path) -> None:
    assert presets() == [
        "crypticbio-common", "crypticbio-endangered", "crypticbio-invasive", "crypticbio-unseen",
        "inat2017", "inat24",
    ]  # fmt: skip
    for preset in presets():
        assert read_config(config(tmp_path, f'preset = "{preset}"\n{SOURCE}')).filters
    more = (
        "[filters]\nyears = [2024, 2026]\nprimary_photo = false\nspecies = 'list.csv'\n"
        "[sampling]\nper_species = 100\n[splits]\nmethod = 'time'\nsince = 2025-01-01\n"
    )
    found = read_config(config(tmp_path, 'preset = "inat24"\n' + SOURCE + more))
    assert list(found.filters) == [
        "quality_grade", "rank", "years", "place", "date", "licenses", "species",
    ]  # fmt: skip
    assert found.filters["years"] == [2024, 2026]
    assert found.filters["species"] == tmp_path / "list.csv"
    assert found.sampling == {"method": "clusters", "per_species": 100}
    assert found.longest_side == 500
    other = SOURCE + "[sampling]\nmethod = 'random'\nper_species = 5\n[splits]\nmethod = 'none'"
    found = read_config(config(tmp_path, 'preset = "inat2017"\n' + other))
    assert (found.sampling, found.splits) == ({"method": "random", "per_species": 5}, {})


def test_several_archives_become_one_corpus(tmp_path: Path, capsys: Any) -> None:
    inaturalist(tmp_path / "dump")
    crypticbio(tmp_path / "cryptic.parquet")
    inaturalist_taxonomy(tmp_path / "taxa")
    path = config(
        tmp_path,
        SOURCE + '[[sources]]\nkind = "crypticbio"\npath = "cryptic.parquet"\n'
        '[taxonomy]\narchive = "taxa"\nnames = ["de"]\n[filters]\nlookalikes = true\n'
        "[sampling]\nmethod = 'observer'\nper_species = 3\n[splits]\nmethod = 'place'\n",
    )
    call_command("curate", "plan", path)
    plan = capsys.readouterr().out
    call_command("curate", "run", path, tmp_path / "one")
    assert capsys.readouterr().out.startswith(plan.rstrip("\n"))
    assert re.search(r"^lookalikes +5 +4 +2 +2$", plan, re.M)
    assert "without a taxon (observations.csv.gz)" in plan
    call_command("curate", "run", path, tmp_path / "two")
    names = {one.name for one in (tmp_path / "one").iterdir()}
    assert names >= {"train.json", "images.csv", "refused.csv", "lookalikes.csv", "report.html"}
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert not {"work", "work.duckdb"} & names
    content = json.loads((tmp_path / "one" / "train.json").read_text())
    arvalis, temporaria = content["categories"]
    assert (arvalis["name"], arvalis["lookalike_group"]) == ("Rana arvalis", "Rana arvalis")
    assert temporaria["lookalike_group"] == "Rana arvalis"
    assert temporaria["common_name"] == "Common frog"
    assert temporaria["family"] == "Ranidae"
    splits = {
        name: json.loads((tmp_path / "one" / f"{name}.json").read_text())["images"]
        for name in ("train", "val", "test")
        if f"{name}.json" in names
    }
    images = [image for split in splits.values() for image in split]
    assert sorted(image["id"] for image in images) == list(range(len(images)))
    by_name = {Path(image["file_name"]).stem: image for image in images}
    assert by_name["70"]["coordinates_obscured"]
    assert by_name["70"]["observer"] == "1"
    assert by_name["70"]["rights_holder"] == '"Ann" the frog'
    assert by_name["72"]["rights_holder"] == ""
    # The source's own words.
    assert (by_name["70"]["license_text"], by_name["72"]["license_text"]) == ("CC-BY-NC", "CC0")
    assert by_name["500"]["date"].startswith("2021-05-01")
    report = (tmp_path / "one" / "report.html").read_text()
    for part in ("<td>lookalikes</td>", "without a taxon", 'class="land"', "M-59.6 80l"):
        assert part in report
    assert (
        "http"
        not in report.replace("https://observation.org", "").split("Problems in the sources")[0]
    )
    with pytest.raises(CommandError, match="isn't empty"):
        call_command("curate", "run", path, tmp_path / "one")


def test_labels_are_mapped_to_an_earlier_corpus(tmp_path: Path) -> None:
    crypticbio(tmp_path / "cryptic.parquet")
    categories = [{"id": 0, "name": "Rana temporaria"}, {"id": 1, "name": "Bufo bufo"}]
    (tmp_path / "before.json").write_text(json.dumps({"categories": categories}))
    path = config(
        tmp_path,
        '[[sources]]\nkind = "crypticbio"\npath = "cryptic.parquet"\n'
        '[taxonomy]\ntarget = "before.json"\n',
    )
    call_command("curate", "run", path, tmp_path / "out")
    content = json.loads((tmp_path / "out" / "train.json").read_text())
    assert [one["name"] for one in content["categories"]] == ["Rana temporaria"]
    assert (tmp_path / "out" / "mapping.csv").read_text().splitlines() == [
        "what,species,other",
        "left out,Rana arvalis,photos: 1",
        '"of the target, none here",Bufo bufo,',
    ]
    report = (tmp_path / "out" / "report.html").read_text()
    row = r"<td>of the target, none here</td>\s*<td class=\"number\">1</td>"
    assert re.search(row, report)
    assert "mapping.csv" in (tmp_path / "out" / "SHA256SUMS").read_text()


def test_planning_needs_no_database_and_leaves_nothing(tmp_path: Path) -> None:
    inaturalist(tmp_path / "dump")
    path = config(tmp_path, SOURCE)
    before = sorted(tmp_path.iterdir())
    done = subprocess.run(
        [sys.executable, "manage.py", "curate", "plan", str(path)],
        cwd=ROOT,
        env={"PATH": "/usr/bin", "VAR_DIR": str(tmp_path / "var"), "DATABASE_URL": "postgres://x:1/y"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "read dump" in done.stdout
    assert [one for one in sorted(tmp_path.iterdir()) if one.name != "var"] == before
