import datetime as dt
import json
import zipfile
from pathlib import Path

import pytest

from core.line_stream import GROWTH_FREE
from curation import tables
from curation.sources import KINDS, read
from curation.sources.darwin_core import define_functions, store
from curation.tables import CurationRefused
from tests.curation import archives

SEVERAL = "observations with several photos: the first is the primary one"
PHOTOS = Path(__file__).parents[3] / "shared" / "photos" / "train.json"


@pytest.fixture
def connection(tmp_path):
    with tables.connect(tmp_path / "curation.duckdb", threads=2) as opened:
        yield opened


def rows(connection, sql):
    return connection.execute(sql).fetchall()


def refusals(connection):
    return {
        (file, reason): (count, example)
        for file, reason, count, example in rows(connection, "FROM refused")
    }


def test_gbif_archive(connection, tmp_path):
    read(connection, kind="gbif-archive", path=archives.gbif_archive(tmp_path / "a", zipped=True))
    counts = {key: count for key, (count, _) in refusals(connection).items()}
    assert counts == {
        ("occurrence.txt", "line refused: too many columns"): 1,
        ("occurrence.txt", "line refused: missing columns"): 1,
        ("occurrence.txt", "line refused: invalid encoding"): 1,
        ("occurrence.txt", "an absence, not an observation"): 1,
        ("occurrence.txt", "an id that is given twice"): 1,
        ("occurrence.txt", "without a taxon"): 1,
        ("occurrence.txt", "without an id"): 1,
        ("occurrence.txt", "name corrected: HTML or blanks"): 1,
        ("occurrence.txt", "date left out: a range of days"): 1,
        ("occurrence.txt", "date left out: no day"): 1,
        ("occurrence.txt", "date left out: in the future"): 1,
        ("occurrence.txt", "date left out: not a date"): 1,
        ("occurrence.txt", "time left out: not the local time"): 1,
        ("occurrence.txt", "place left out: 0/0"): 1,
        ("occurrence.txt", "place left out: latitude and longitude look swapped"): 1,
        ("occurrence.txt", "place left out: latitude out of range"): 1,
        ("occurrence.txt", "place left out: not two numbers"): 1,
        ("multimedia.txt", "a sound, not a photo"): 1,
        ("multimedia.txt", "a video, not a photo"): 1,
        ("multimedia.txt", "a photo whose address is not a web address"): 1,
        ("multimedia.txt", "a photo without its observation"): 2,
        ("multimedia.txt", "an id that is given twice"): 1,
        ("multimedia.txt", "without a license"): 1,
        ("occurrence.txt", "columns that are not there"): 0,
        ("multimedia.txt", SEVERAL): 1,
        (
            "multimedia.txt",
            "license left out: no Creative Commons license or public domain",
        ): 1,
    }
    swapped = "place left out: latitude and longitude look swapped"
    missing = refusals(connection)["occurrence.txt", "columns that are not there"][1]
    assert "iucnRedListCategory" in missing
    assert "eventDate" not in missing
    assert refusals(connection)["occurrence.txt", swapped][1] == (
        "9 · Rana temporaria · 2021-05-01T10:20:30 · 151.2 · -33.8"
    )

    assert rows(
        connection,
        "SELECT taxon_id, name, rank, status, accepted_id, kingdom, genus, epithet FROM taxon "
        "ORDER BY 1",
    ) == [
        ("10", "Rana temporaria", "species", "accepted", "", "Animalia", "Rana", "temporaria"),
        ("20", "Quercus × hispanica", "species", "accepted", "", "Animalia", "Rana", "hispanica"),
        ("30", "Bufo", "genus", "", "", "Animalia", "Rana", ""),
    ]
    observations = {
        row[0]: row[1:]
        for row in rows(
            connection,
            "SELECT observation_id, day, observed_at, latitude, longitude, "
            "obscured, elevation, country, quality_grade FROM observation",
        )
    }
    day, here = dt.date(2021, 5, 1), (52.5, 13.4)
    moment = dt.datetime.fromisoformat("2021-05-01T10:20:30")
    rest = (12.0, "DE", "research")
    assert sorted(observations, key=int) == [str(number) for number in range(1, 19)]
    assert observations["1"] == (day, moment, *here, False, *rest)
    assert observations["2"] == (None, None, *here, False, *rest)
    assert observations["3"][:2] == (
        dt.date(2021, 5, 2),
        dt.datetime.fromisoformat("2021-05-02T08:00"),
    )
    assert observations["6"][:2] == (day, None)
    assert {key for key, row in observations.items() if row[0] is None} == {"2", "4", "5", "7"}
    assert {key for key, row in observations.items() if row[2] is None} == {"8", "9", "10", "12"}
    assert observations["11"][2:4] == here
    assert {key for key, row in observations.items() if row[4]} == {"13", "15", "16"}

    by, nc = (
        "https://creativecommons.org/licenses/by/3.0/",
        "https://creativecommons.org/licenses/by-nc/4.0/",
    )
    assert rows(connection, "SELECT photo_id, observation_id, position, media_type, license, "
                "license_url, rights_holder FROM photo WHERE media_type = 'image/jpeg' "
                "ORDER BY 2, 3") == [
        ("100", "1", 0, "image/jpeg", "cc-by-nc", nc, "Ann"),
        ("99", "1", 1, "image/jpeg", "cc-by", by, "Ann"),
        ("107", "18", 0, "image/jpeg", "cc0",
         "https://creativecommons.org/publicdomain/zero/1.0/", ""),
        ("104", "2", 0, "image/jpeg", "cc-by-nc-sa",
         "https://creativecommons.org/licenses/by-nc-sa/4.0/", "Ann"),
        ("105", "3", 0, "image/jpeg", "", "", ""),
        ("106", "4", 0, "image/jpeg", "", "", ""),
    ]  # fmt: skip
    assert rows(
        connection, "SELECT media_type, rights_holder FROM photo WHERE observation_id = '7'"
    ) == [("image/png", 'Ann "the frog')]
    # A name is kept where a license asks for it, else only what tells observers apart.
    assert rows(
        connection, "SELECT observer, observer_name FROM observation WHERE observation_id = '18'"
    ) == [("https://orcid.org/0000-0001", "")]
    ((observer, name),) = rows(
        connection, "SELECT observer, observer_name FROM observation WHERE observation_id = '1'"
    )
    assert (observer[:5], len(observer), name) == ("name-", 37, 'Ann "the frog')
    assert len(rows(connection, "FROM kept")) == 7

    # The same archive once more changes no table but `refused`.
    before = [
        rows(connection, f"FROM {name} ORDER BY ALL")
        for name in ("taxon", "observation", "photo", "kept")
    ]
    read(connection, kind="gbif-archive", path=tmp_path / "a")
    assert before == [
        rows(connection, f"FROM {name} ORDER BY ALL")
        for name in ("taxon", "observation", "photo", "kept")
    ]
    assert refusals(connection)["multimedia.txt", "an id that is read already"][0] == 8


def archive_with(folder, *extensions, core="Occurrence", more=(), **occurrence):
    """An archive of two frogs without photos, and other tables: (file, row type, terms, lines)."""
    frogs = [{"gbifID": number, **archives.FROG, **occurrence} for number in ("1", "2")]
    archives.gbif_archive(folder, frogs, [], broken=False)
    meta = (folder / "meta.xml").read_text()
    begin, end = meta.index("<extension"), meta.index("</extension>") + len("</extension>")
    described = ""
    for name, kind, terms, lines in extensions:
        fields = "".join(
            f'<field index="{place}" term="http://rs.tdwg.org/dwc/terms/{term}"/>'
            for place, term in enumerate(terms, start=1)
        )
        described += (
            f'<extension encoding="UTF-8" fieldsTerminatedBy="\\t" ignoreHeaderLines="1" '
            f'rowType="http://rs.gbif.org/terms/1.0/{kind}"><files><location>{name}</location>'
            f'</files><coreid index="0"/>{fields}</extension>'
        )
        rows = ["\t".join(("gbifID", *terms)), *("\t".join(line) for line in lines)]
        (folder / name).write_text("\n".join(rows) + "\n")
    meta = meta[:begin] + described + meta[end:]
    for name in more:
        meta = meta.replace(
            "<location>occurrence.txt</location>",
            f"<location>occurrence.txt</location><location>{name}</location>",
        )
    (folder / "meta.xml").write_text(meta)
    return folder


def test_the_verbatim_table_of_a_gbif_download_replaces_nothing(connection, tmp_path):
    verbatim = ("verbatim.txt", "Occurrence", ("scientificName", "eventDate"),
                [("1", "Grasfrosch", "gestern"), ("2", "Grasfrosch", "heute")])  # fmt: skip
    read(connection, kind="gbif-archive", path=archive_with(tmp_path, verbatim))
    alone = rows(connection, "SELECT observation_id, taxon_id, day FROM observation ORDER BY ALL")
    assert [one[0] for one in alone] == ["1", "2"]
    assert rows(connection, "SELECT count(*) FROM taxon WHERE name = 'Grasfrosch'") == [(0,)]
    assert refusals(connection)["verbatim.txt", "a table that is not used"] == (2, "Occurrence")


def test_photos_of_simple_images_and_associated_media(connection, tmp_path):
    url = "https://example.org/%s.jpg"
    images = ("images.txt", "Image", ("identifier", "license"),
              [("1", url % "a", "CC0"), ("1", url % "b", "CC0")])  # fmt: skip
    both = f"{url % 'c'} | {url % 'd'}"
    folder = archive_with(tmp_path, images, associatedMedia=both)
    read(connection, kind="gbif-archive", path=folder)
    found = rows(connection, "SELECT observation_id, url FROM photo ORDER BY ALL")
    # Of the second alone the others count.
    assert found == [("1", url % "a"), ("1", url % "b"), ("2", url % "c"), ("2", url % "d")]


def test_a_table_may_be_in_several_files(connection, tmp_path):
    folder = archive_with(tmp_path, more=("occurrence2.txt",))
    text = (folder / "occurrence.txt").read_text(encoding="utf-8-sig")
    header, first, second = text.splitlines()
    (folder / "occurrence.txt").write_text(f"{header}\n{first}\n")
    (folder / "occurrence2.txt").write_text(f"{header}\n{second}\n")
    read(connection, kind="gbif-archive", path=folder)
    assert rows(connection, "SELECT observation_id FROM observation ORDER BY 1") == [("1",), ("2",)]


def test_gbif_downloads_without_an_archive(connection, tmp_path):
    read(connection, kind="gbif-csv", path=archives.gbif_csv(tmp_path / "alone"))
    missing = refusals(connection)["simple.csv", "a photo without an address"]
    assert missing[0] == 18
    assert rows(connection, "SELECT count(*), count(DISTINCT url) FROM photo") == [(18, 1)]
    for table in ("taxon", "observation", "photo", "refused"):
        connection.execute(f"DELETE FROM {table}")

    archives.gbif_archive(tmp_path / "both")
    read(connection, kind="gbif-csv", path=archives.gbif_csv(tmp_path / "both"))
    assert rows(connection, "SELECT count(*) FROM photo WHERE url <> ''") == [(7,)]
    for table in ("taxon", "observation", "photo", "refused"):
        connection.execute(f"DELETE FROM {table}")

    read(connection, kind="gbif-parquet", path=archives.gbif_snapshot(tmp_path / "snapshot"))
    assert rows(connection, "SELECT observation_id, taxon_id, observer_name, observed_at, latitude "
                "FROM observation ORDER BY 1") == [
        (key, "10", "Ann|Bob", dt.datetime.fromisoformat("2021-05-01T10:20:30"), 52.5)
        for key in "12"
    ]  # fmt: skip
    assert len(rows(connection, "FROM kept")) == 2


def test_an_archive_in_another_encoding(connection, tmp_path):
    people = [{"gbifID": "1", **archives.FROG, "recordedBy": "Zoë"}]
    folder = archives.gbif_archive(tmp_path / "a", people, broken=False)
    meta, data = folder / "meta.xml", folder / "occurrence.txt"
    meta.write_text(meta.read_text().replace("UTF-8", "windows-1252"))
    data.write_bytes(data.read_text(encoding="utf-8-sig").encode("cp1252"))
    read(connection, kind="gbif-archive", path=folder)
    assert rows(connection, "SELECT observer_name FROM observation") == [("Zoë",)]
    meta.write_text(meta.read_text().replace("windows-1252", "klingon"))
    with pytest.raises(CurationRefused, match="unknown encoding, klingon"):
        read(connection, kind="gbif-archive", path=folder)


def test_inaturalist(connection, tmp_path):
    read(connection, kind="inaturalist", path=archives.inaturalist(tmp_path / "open"))
    assert rows(connection, "SELECT taxon_id, name, rank, status, kingdom, phylum, family, genus, "
                "epithet FROM taxon") == [
        ("5", "Rana temporaria", "species", "accepted", "Animalia", "Chordata", "Ranidae", "Rana",
         "temporaria")
    ]  # fmt: skip
    assert rows(connection, "SELECT observation_id, observer, observer_name, day, latitude, "
                "uncertainty, obscured, quality_grade FROM observation ORDER BY 1") == [
        ("a", "1", '"Ann" the frog', dt.date(2021, 5, 1), 52.5, 28200.0, True, "research"),
        ("b", "2", "", None, None, None, False, "needs_id"),
    ]  # fmt: skip
    url = f"{archives.PHOTOS}/%s/medium.%s"
    zero = "https://creativecommons.org/publicdomain/zero/1.0/"
    nc = "https://creativecommons.org/licenses/by-nc/4.0/"
    assert rows(connection, "SELECT photo_id, position, url, license, license_url, rights_holder "
                "FROM photo ORDER BY 1") == [
        ("70", 1, url % (70, "jpg"), "cc-by-nc", nc, '"Ann" the frog'),
        ("71", 2, url % (71, "jpeg"), "cc-by-nc", nc, '"Ann" the frog'),
        ("72", 0, url % (72, "jpg"), "cc0", zero, ""),
    ]  # fmt: skip
    assert {key: count for key, (count, _) in refusals(connection).items()} == {
        ("observations.csv.gz", "without a taxon"): 2,
        ("photos.csv.gz", "a photo without its observation"): 1,
        ("photos.csv.gz", SEVERAL): 1,
    }


def test_crypticbio(connection, tmp_path):
    read(connection, kind="crypticbio", path=archives.crypticbio(tmp_path / "c.parquet"))
    assert rows(connection, "SELECT taxon_id, kingdom, family FROM taxon ORDER BY 1") == [
        ("Rana arvalis", "Animalia", ""),
        ("Rana temporaria", "Animalia", ""),
    ]
    assert rows(connection, "FROM confusion ORDER BY ALL") == [
        ("Rana arvalis", "Rana temporaria"),
        ("Rana temporaria", "Rana arvalis"),
    ]
    assert rows(connection, "FROM vernacular ORDER BY ALL") == [
        ("Rana arvalis", "en", "Moor frog"),
        ("Rana temporaria", "en", "Common frog"),
        ("Rana temporaria", "en", "Grass frog"),
    ]
    assert rows(
        connection, "SELECT day, latitude FROM observation WHERE observation_id = '500'"
    ) == [(dt.date(2021, 5, 1), 52.5)]
    assert refusals(connection)["c.parquet", "date left out: no day"][0] == 1


# A license in a source, its code and its address in the tables.
CC = "https://creativecommons.org"
LICENSES = [
    ("CC_BY_NC_4_0", "cc-by-nc", f"{CC}/licenses/by-nc/4.0/"),
    ("CC0_1_0", "cc0", f"{CC}/publicdomain/zero/1.0/"),
    ("http://creativecommons.org/licenses/by/2.0/de/", "cc-by", f"{CC}/licenses/by/2.0/"),
    ("creativecommons.org/licenses/by/4.0/legalcode", "cc-by", f"{CC}/licenses/by/4.0/"),
    ("http://creativecommons.org/licenses/by-sa/", "cc-by-sa",
     "http://creativecommons.org/licenses/by-sa/"),
    ("cc-by-nc", "cc-by-nc", ""),
    ("PDM", "pd", f"{CC}/publicdomain/mark/1.0/"),
    ("http://example.org/terms", "", "http://example.org/terms"),
    ("Usage permitted with attribution, not for commercial purposes", "", ""),
    ("Copyright by the author, attribution needed", "", ""),
    ("not in the public domain", "", ""),
    ("CC BY-NC 4.0 (images), CC0 (data)", "", ""),
    ("CC BY+NC", "cc-by-nc", ""),
    ("Attribution", "", ""),
]  # fmt: skip


def test_a_license_is_known_only_where_it_stands_alone_and_the_text_is_kept(connection):
    connection.execute(
        "CREATE TABLE staged_occurrence AS SELECT 'one' AS id, 'Rana arvalis' AS species;"
        "CREATE TABLE staged_media (photo TEXT, occurrence TEXT, url TEXT, license TEXT)"
    )
    for number, (text, *_) in enumerate(LICENSES):
        values = [f"{number:02}", "one", f"https://example.org/{number}", text]
        connection.execute("INSERT INTO staged_media VALUES (?, ?, ?, ?)", values)
    define_functions(connection)
    store(connection, occurrences="o", media="m", as_of=None)
    assert rows(connection, "SELECT license_text, license, license_url FROM photo "
                "ORDER BY photo_id") == LICENSES  # fmt: skip


def test_names_and_addresses_of_two_licenses_are_none(connection, tmp_path):
    licenses = [
        {"id": 1, "name": "CC BY", "url": f"{CC}/licenses/by/4.0/"},
        {"id": 2, "name": "CC BY-NC", "url": f"{CC}/licenses/by/4.0/"},
    ]
    path = tmp_path / "train.json"
    path.write_text(json.dumps({
        "categories": [{"id": 0, "name": "Rana arvalis"}], "licenses": licenses,
        "images": [{"id": one["id"], "file_name": "a.jpg", "license": one["id"],
                    "latitude": 1.5, "longitude": 2, "coordinates_obscured": one["id"] == 1}
                   for one in licenses],
        "annotations": [{"id": i, "image_id": i, "category_id": 0} for i in (1, 2)],
    }))  # fmt: skip
    read(connection, kind="coco", path=path)
    assert rows(connection, "SELECT license, license_url, license_text, obscured FROM photo "
                "JOIN observation USING (observation_id) ORDER BY photo_id") == [
        ("cc-by", f"{CC}/licenses/by/4.0/", f"{CC}/licenses/by/4.0/", True),
        ("", "", f"CC BY-NC {CC}/licenses/by/4.0/", False),
    ]  # fmt: skip


def test_coco(connection, tmp_path):
    path = archives.coco(
        tmp_path / "train.json", ["Rana temporaria", "Bufo bufo"], [(1, 0), (2, 0), (2, 1)]
    )
    read(connection, kind="coco", path=path)
    assert rows(connection, "SELECT photo_id, file_name, url, license FROM photo") == [
        ("1", "1.jpg", str(tmp_path / "1.jpg"), "cc-by-nc-nd")
    ]
    assert refusals(connection)["train.json", "without a taxon"][0] == 1


@pytest.mark.skipif(not PHOTOS.exists(), reason="the photographs of ../shared/photos aren't here")
def test_photographs_as_coco_and_as_an_archive(tmp_path):
    path = archives.of_photographs(PHOTOS, tmp_path / "archive", "https://example.org")
    found = []
    for kind, source in (("coco", PHOTOS), ("gbif-archive", path)):
        with tables.connect(tmp_path / f"{kind}.duckdb", threads=2) as connection:
            read(connection, kind=kind, path=source)
            found.append([
                rows(connection, "SELECT taxon_id, name, rank, status, kingdom, genus, epithet "
                     "FROM taxon ORDER BY ALL"),
                rows(connection, "SELECT * EXCLUDE (elevation) FROM observation ORDER BY ALL"),
                rows(connection, "SELECT observation_id, position, media_type, license, "
                     "license_url, regexp_extract(url, 'train/.*') "
                     "FROM photo ORDER BY ALL"),
            ])  # fmt: skip
    assert [len(table) for table in found[0]] == [102, 127, 127]
    assert found[0] == found[1]


def test_sources_that_cannot_be_read(connection, tmp_path):
    assert KINDS == (
        "gbif-archive",
        "gbif-csv",
        "gbif-parquet",
        "inaturalist",
        "crypticbio",
        "coco",
        "camtrap-dp",
    )
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.zip").write_bytes(b"PK no")
    with zipfile.ZipFile(tmp_path / "zeros.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("meta.xml", bytes(4 * GROWTH_FREE))
    (tmp_path / "bad.json").write_text('{"images": [')
    (tmp_path / "none.json").write_text("{}")
    (tmp_path / "bad.csv").write_text("some\tcolumns\n")
    for kind, name, part in (
        ("gbif-archive", "nowhere", "is not there"),
        ("gbif-archive", "empty", "meta.xml"),
        ("gbif-archive", "bad.zip", "neither a folder nor a zip"),
        ("gbif-archive", "zeros.zip", "becomes more than 64 times as large"),
        ("gbif-csv", "bad.csv", "has no column key or gbifID"),
        ("gbif-parquet", "empty", "holds no Parquet files"),
        ("gbif-parquet", "bad.csv", "bad.csv"),
        ("inaturalist", "empty", "holds no observations.csv.gz"),
        ("coco", "bad.json", "isn't JSON"),
        ("coco", "none.json", "it has no images"),
        ("camtrap-dp", "empty", "isn't a Camtrap DP's: .*datapackage.json"),
        ("zoo", "empty", "unknown kind zoo"),
    ):
        with pytest.raises(CurationRefused, match=part):
            read(connection, kind=kind, path=tmp_path / name)
    assert rows(connection, "SELECT count(*) FROM refused") == [(0,)]
    assert (
        rows(connection, "SELECT table_name FROM duckdb_tables() WHERE table_name LIKE '%staged%'")
        == []
    )
