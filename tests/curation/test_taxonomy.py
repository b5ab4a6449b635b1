import pytest

from curation import tables
from curation.sources import read
from curation.tables import CurationRefused
from curation.taxonomy import map_labels, read_names, read_taxonomy
from tests.curation import archives

pytestmark = pytest.mark.pure


@pytest.fixture
def connection(tmp_path):
    with tables.connect(tmp_path / "curation.duckdb", threads=2) as opened:
        yield opened


def rows(connection, sql):
    return connection.execute(sql).fetchall()


def corpus(path, *names):
    """A corpus with one image of the first category, two of the second and so on."""
    images = [name for name, _ in enumerate(names) for _ in range(name + 1)]
    return archives.coco(path, list(names), list(enumerate(images)))


def test_taxonomies_and_names(connection, tmp_path):
    read(connection, kind="coco", path=corpus(tmp_path / "c.json", "Rana temporaria", "Bufo sp"))
    backbone = archives.backbone(tmp_path / "backbone")
    read_taxonomy(connection, path=backbone)
    taxa = "SELECT taxon_id, name, status, accepted_id, kingdom, family FROM taxon ORDER BY 1"
    expected = [
        ("10", "Rana temporaria", "accepted", "", "Animalia", "Ranidae"),
        ("12", "Lithobates pipiens", "accepted", "", "Animalia", "Ranidae"),
        ("13", "Rana pipiens", "synonym", "12", "Animalia", "Ranidae"),
        ("14", "Rana brachycephala", "synonym", "12", "Animalia", "Ranidae"),
        ("15", "Bufo bufo", "accepted", "", "Animalia", "Bufonidae"),
        ("Bufo sp", "Bufo sp", "accepted", "", "", ""),
        # The corpus knows its taxon by name: it has the lineage now, under its own id.
        ("Rana temporaria", "Rana temporaria", "accepted", "", "Animalia", "Ranidae"),
    ]
    assert rows(connection, taxa) == expected
    read_taxonomy(connection, path=backbone)
    assert rows(connection, taxa) == expected

    read_names(connection, path=backbone, languages=["de", "pt-BR", "en"])
    read_names(connection, path=backbone, languages=["de"])
    assert rows(connection, "FROM vernacular ORDER BY ALL") == [
        ("10", "de", "Grasfrosch"),
        ("10", "pt-BR", "Rã-vermelha"),
        ("12", "en", 'Leopard "frog'),
        ("15", "de", "Erdkröte"),
        ("Rana temporaria", "de", "Grasfrosch"),
        ("Rana temporaria", "pt-BR", "Rã-vermelha"),
    ]
    with pytest.raises(CurationRefused, match="holds neither"):
        read_taxonomy(connection, path=tmp_path)


def test_names_of_inaturalist(connection, tmp_path):
    read(connection, kind="inaturalist", path=archives.inaturalist(tmp_path / "open"))
    archive = archives.inaturalist_taxonomy(tmp_path / "taxonomy")
    read_taxonomy(connection, path=archive)
    assert rows(connection, "SELECT taxon_id, name, phylum FROM taxon ORDER BY 1") == [
        ("5", "Rana temporaria", "Chordata"),
        ("9", "Bufo bufo", ""),
    ]
    read_names(connection, path=archive, languages=["en", "de"])
    assert rows(connection, "FROM vernacular ORDER BY ALL") == [
        ("5", "de", "Frosch, der"),
        ("5", "en", 'The "frog"'),
    ]


def test_labels_of_another_taxonomy(connection, tmp_path):
    source = corpus(
        tmp_path / "now.json",
        "Rana temporaria",  # the same name there
        "Rana brachycephala",  # another synonym of what the target calls Rana pipiens
        "Lithobates pipiens",  # the accepted name of it
        "Bufo bufo",  # not in the target
    )
    read(connection, kind="coco", path=source)
    read_taxonomy(connection, path=archives.backbone(tmp_path / "backbone"))
    target = corpus(tmp_path / "then.json", "Rana temporaria", "Rana pipiens", "Hyla arborea")
    report = map_labels(connection, target=target)
    assert (report.photos_before, report.photos_after, report.same) == (10, 6, 1)
    assert report.renamed == [
        ("Lithobates pipiens", "Rana pipiens"),
        ("Rana brachycephala", "Rana pipiens"),
    ]
    assert report.splits == [("Rana pipiens", ["Lithobates pipiens", "Rana brachycephala"])]
    assert (report.merges, report.unmapped) == ([], [("Bufo bufo", 4)])
    assert report.absent == ["Hyla arborea"]
    labels = (
        "SELECT name, status, count(*) FROM kept JOIN photo USING (photo_id) JOIN observation "
        "USING (observation_id) JOIN taxon USING (taxon_id) GROUP BY ALL ORDER BY 1"
    )
    expected = [("Rana pipiens", "accepted", 5), ("Rana temporaria", "accepted", 1)]
    assert rows(connection, labels) == expected
    again = map_labels(connection, target=target)
    assert (again.photos_before, again.photos_after, again.same, again.renamed) == (6, 6, 2, [])
    assert rows(connection, labels) == expected


def test_merged_labels_are_not_guessed(connection, tmp_path):
    read(connection, kind="coco", path=corpus(tmp_path / "now.json", "Lithobates pipiens"))
    read_taxonomy(connection, path=archives.backbone(tmp_path / "backbone"))
    target = corpus(tmp_path / "then.json", "Rana pipiens", "Rana brachycephala")
    report = map_labels(connection, target=target)
    assert report.merges == [("Lithobates pipiens", ["Rana brachycephala", "Rana pipiens"])]
    assert report.unmapped == [("Lithobates pipiens", 1)]
    assert (report.photos_after, rows(connection, "SELECT count(*) FROM kept")) == (0, [(0,)])


def test_an_archive_as_the_target(connection, tmp_path):
    read(connection, kind="coco", path=corpus(tmp_path / "now.json", "Rana pipiens", "Bufo bufo"))
    report = map_labels(connection, target=archives.backbone(tmp_path / "backbone"))
    assert (report.same, report.renamed) == (1, [("Rana pipiens", "Lithobates pipiens")])
    assert report.absent == ["Rana temporaria"]
    assert rows(connection, "SELECT count(*) FROM kept") == [(3,)]
