"""Filters, sampling and splits on small tables, with exact results."""

from __future__ import annotations

import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation import filters, sampling, splits
from curation.tables import Connection, CurationRefused, connect

pytestmark = pytest.mark.pure

NOTHING: dict[str, Any] = {
    "photos": 1, "species": "Rana temporaria", "observer": "ann", "day": date(2021, 5, 1),
    "latitude": 10.0, "longitude": 20.0, "license": "cc-by", "quality_grade": "research",
    "rank": "species", "iucn": "", "genus": "", "obscured": False, "uncertainty": None,
}  # fmt: skip


def fill(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """One observation a row, with so many photos `<observation>-<number>`; all are kept."""
    taxa, observations, photos = {}, [], []
    for number, given in enumerate(rows):
        row = NOTHING | given
        name = row["species"]
        taxa[name] = (row["rank"], row["iucn"], row["genus"] or name.split()[0])
        key = row.get("id", f"o{number:05d}")
        observations += [
            key, name, row["observer"], row["day"], row["day"], row["latitude"], row["longitude"],
            row["uncertainty"], row["obscured"], row["quality_grade"],
        ]  # fmt: skip
        for position in range(row["photos"]):
            photos += [f"{key}-{position}", key, position, row["license"]]
    connection.begin()
    for table, line, values in (
        ("observation", "(?, ?, ?, '', ?, ?, ?, ?, ?, ?, NULL, '', ?, '')", observations),
        ("photo", "(?, ?, ?, 'image/jpeg', 'http://x', '', ?, '', '', '', NULL, NULL)", photos),
    ):
        lines = ", ".join([line] * (len(values) // line.count("?")))
        connection.execute(f"INSERT INTO {table} VALUES {lines}", values)
    for name, (rank, iucn, genus) in taxa.items():
        connection.execute(
            "INSERT INTO taxon VALUES ($1, $1, $2, 'accepted', '', '', '', '', '', '', $3, '', $4)",
            [name, rank, genus, iucn],
        )
    connection.execute("INSERT INTO kept SELECT photo_id FROM photo")
    connection.commit()


def kept(connection: Connection) -> list[str]:
    return [one for (one,) in connection.execute("FROM kept ORDER BY ALL").fetchall()]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with connect(tmp_path / "work.duckdb", threads=2) as opened:
        yield opened


def test_filters_keep_what_meets_them(connection: Connection, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "photos": 2},
        {"id": "b", "quality_grade": "casual", "observer": "bob"},
        {"id": "c", "license": "", "day": date(2019, 1, 1), "observer": "bob"},
        {"id": "d", "latitude": None, "longitude": None, "day": None},
        {"id": "e", "species": "Bufo bufo", "longitude": 179.5, "iucn": "EN", "obscured": True},
        {"id": "f", "species": "Bufo", "rank": "genus", "longitude": -179.5, "uncertainty": 30.0},
    ]
    fill(connection, rows)
    connection.execute("INSERT INTO confusion VALUES ('Rana temporaria', 'Bufo bufo')")
    (tmp_path / "list.csv").write_text(
        '\ufeffspeciesKey,scientificName\n1,"Bufo bufo (Linnaeus, 1758)"\n'
    )
    (tmp_path / "names.txt").write_text("Bufo\nBufo bufo\n")
    (tmp_path / "box.json").write_text(
        '{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {}, '
        '"geometry": {"type": "Polygon", '
        '"coordinates": [[[19, 9], [21, 9], [21, 12], [19, 9]]]}}]}'
    )
    everything = kept(connection)
    for name, value, left in [
        ("quality_grade", ["Research"], "a-0 a-1 c-0 d-0 e-0 f-0"),
        ("licenses", ["cc-by"], "a-0 a-1 b-0 d-0 e-0 f-0"),
        ("rank", ["species"], "a-0 a-1 b-0 c-0 d-0 e-0"),
        ("place", True, "a-0 a-1 b-0 c-0 e-0 f-0"),
        ("exact_place", True, "a-0 a-1 b-0 c-0 d-0 f-0"),
        ("uncertainty", 50, "f-0"),
        ("date", True, "a-0 a-1 b-0 c-0 e-0 f-0"),
        ("years", [2020, 2021], "a-0 a-1 b-0 e-0 f-0"),
        ("days", [date(2019, 1, 1), date(2019, 12, 31)], "c-0"),
        ("primary_photo", True, "a-0 b-0 c-0 d-0 e-0 f-0"),
        ("least", {"observations": 2, "observers": 2}, "a-0 a-1 b-0 c-0 d-0"),
        ("least", {"observations": 5}, ""),
        ("balanced", 1, "6 photos or fewer"),
        ("species", tmp_path / "list.csv", "e-0"),
        ("species", tmp_path / "names.txt", "e-0 f-0"),
        ("genera", ["Bufo"], "e-0 f-0"),
        ("iucn", ["en"], "e-0"),
        ("lookalikes", True, "a-0 a-1 b-0 c-0 d-0 e-0"),
        ("lookalikes", ["Bufo bufo"], "a-0 a-1 b-0 c-0 d-0 e-0"),
        ("lookalikes", {"iucn": ["EN"]}, "a-0 a-1 b-0 c-0 d-0 e-0"),
        ("lookalikes", {"iucn": ["CR"]}, ""),
        ("box", [170, 0, -170, 20], "e-0 f-0"),
        ("box", [0, 0, 90, 20], "a-0 a-1 b-0 c-0"),
        ("polygon", tmp_path / "box.json", "a-0 a-1 b-0 c-0"),
    ]:
        filters.apply(connection, name=name, value=value)
        found = kept(connection)
        if name == "balanced":
            species = connection.execute("SELECT species FROM candidate").fetchall()
            observed = connection.execute("SELECT DISTINCT observation_id FROM candidate")
            assert len(observed.fetchall()) == len(set(species)) == 3
        else:
            assert found == left.split(), (name, value)
        connection.execute("DELETE FROM kept; INSERT INTO kept SELECT photo_id FROM photo")
    assert kept(connection) == everything


@pytest.mark.parametrize(
    ("name", "value"),
    [("years", [2020]), ("place", "yes"), ("licenses", "cc0"), ("least", {"people": 3}),
     ("species", "missing.txt"), ("days", ["2020", "2021"]), ("lookalikes", {"red": 1})],
)  # fmt: skip
def test_a_filter_names_itself_when_its_value_is_wrong(
    connection: Connection, name: str, value: Any
) -> None:
    with pytest.raises(CurationRefused, match=f"filters.{name}"):
        filters.apply(connection, name=name, value=value)


def some_rows(count: int, seed: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    return [
        {
            "id": f"{n:04d}",
            "species": f"Genus {'abc'[min(draw.randrange(6), 2)]}",
            "observer": f"p{int(30 * draw.random() ** 2)}",
            "day": date(2021, 1, 1) + timedelta(draw.randrange(60)),
            "latitude": draw.choice([10, 10.05, 40, 60, -30]) + draw.random() / 50,
            "longitude": draw.choice([20, 20.05, 90, -70]) + draw.random() / 50,
            "photos": draw.randrange(1, 4),
        }
        for n in range(count)
    ]


@pytest.mark.parametrize("method", sampling.METHODS)
def test_a_sample_depends_on_the_seed_and_not_on_the_order_of_rows(
    tmp_path: Path, method: str
) -> None:
    rows = some_rows(150, 3)
    found = []
    for number, (order, seed, threads) in enumerate([(0, 1, 1), (1, 1, 2), (0, 2, 2)]):
        shuffled = list(rows)
        random.Random(order).shuffle(shuffled)
        with connect(tmp_path / f"{number}.duckdb", threads=threads) as opened:
            fill(opened, shuffled)
            sampling.sample(opened, method=method, seed=seed, per_species=12)
            found.append(kept(opened))
            sizes = opened.execute(
                "SELECT species, count(DISTINCT observation_id) FROM candidate GROUP BY species"
            ).fetchall()
    assert found[0] == found[1] != found[2]
    there = Counter(row["species"] for row in rows)
    assert dict(sizes) == {species: min(12, count) for species, count in there.items()}
    chosen = {one.split("-")[0] for one in found[0]}
    assert len(found[0]) == sum(row["photos"] for row in rows if row["id"] in chosen)


def test_by_observer_everybody_comes_once_before_anybody_comes_twice(
    connection: Connection,
) -> None:
    rows = [{"observer": "busy"} for _ in range(20)] + [{"observer": f"p{n}"} for n in range(4)]
    fill(connection, rows)
    sampling.sample(connection, method="observer", seed=0, per_species=6)
    people = connection.execute("SELECT observer FROM candidate ORDER BY ALL").fetchall()
    assert [one for (one,) in people] == ["busy", "busy", "p0", "p1", "p2", "p3"]


def test_groups_of_a_day_are_linked_by_steps_of_ten_kilometers() -> None:
    rows = [(1, 0.0, 0.0), (1, 0.0, 0.08), (1, 0.0, 0.16), (1, 0.0, 0.26), (2, 0.0, 0.0),
            (1, 89.99, 0.0), (1, 89.99, 180.0), (1, 5.0, 179.99), (1, 5.0, -179.97)]  # fmt: skip
    days, latitude, longitude = (np.array(column, float) for column in zip(*rows, strict=True))
    found = sampling.day_groups(days, latitude, longitude, group_km=10.0).tolist()
    # At the equator 0.08° are 8.9 km and 0.10° are 11.1; the pole and 180° are no borders.
    assert found[0] == found[1] == found[2]
    assert found[5] == found[6]
    assert found[7] == found[8]
    assert len(set(found)) == 5
    assert sorted(set(found)) == list(range(5))


def test_groups_agree_with_a_direct_computation() -> None:
    draw = np.random.default_rng(5)
    days = draw.integers(0, 3, 200)
    latitude, longitude = draw.uniform(50, 50.8, 200).round(2), draw.uniform(7, 8, 200).round(2)
    found = sampling.day_groups(days, latitude, longitude, group_km=10.0)
    points = sampling.unit_sphere(latitude, longitude)
    angle = 2 * np.arcsin(np.linalg.norm(points[:, None] - points[None], axis=-1) / 2)
    near = (angle * sampling.EARTH_KM <= 10) & (days[:, None] == days)
    while ((further := (near.astype(int) @ near) > 0) != near).any():
        near = further
    assert (near == (found[:, None] == found)).all()


def test_clusters_are_those_of_the_farthest_points() -> None:
    points = np.array([[0.0], [1.0], [10.0], [11.0], [5.0]])
    assert sampling.farthest_clusters(points, 1).tolist() == [0, 0, 0, 0, 0]
    # The farthest from 0 is 11; then 5, at 5 from 0 and 6 from 11.
    assert sampling.farthest_clusters(points, 2).tolist() == [0, 0, 1, 1, 0]
    assert sampling.farthest_clusters(points, 3).tolist() == [0, 0, 1, 1, 2]
    assert sampling.farthest_clusters(np.zeros((3, 2)), 2).tolist() == [0, 0, 0]


def test_clusters_give_one_in_turn_new_groups_and_observers_first() -> None:
    # Two places far apart: five observations here, three there.
    chosen = sampling.choose(
        days=np.zeros(8, np.int64),
        latitude=np.array([0, 0, 0, 0, 0, 60, 60, 60.0]),
        longitude=np.zeros(8),
        groups=np.array([1, 1, 1, 2, 3, 9, 9, 9]),
        observers=np.array([7, 7, 8, 7, 8, 5, 5, 7]),
        size=7,
        clusters=2,
    )
    # Here: the first; then of the new groups 2 and 3 that of a new observer (4); then group 2 (3);
    # then nothing is new (1). There: the first; all are of a known group, and 5 and 7 are known.
    assert chosen.tolist() == [0, 5, 4, 6, 3, 7, 1]
    everything = sampling.choose(
        days=np.zeros(2, np.int64), latitude=np.zeros(2), longitude=np.zeros(2),
        groups=np.zeros(2), observers=np.zeros(2), size=2,
    )  # fmt: skip
    assert everything.tolist() == [0, 1]


def test_spread_samples_lean_less_to_where_most_observations_are(connection: Connection) -> None:
    draw = random.Random(1)
    places = [(50.0, 8.0)] * 180 + [(-30.0, 25.0), (10.0, 100.0), (-15.0, -60.0), (5.0, 20.0)] * 5
    fill(
        connection,
        [
            {
                "latitude": latitude + draw.random() / 2,
                "longitude": longitude + draw.random() / 2,
                "day": date(2021, 1, 1) + timedelta(draw.randrange(300)),
                "observer": f"p{n % 50}",
            }
            for n, (latitude, longitude) in enumerate(places)
        ],
    )
    shares = {}
    for method in ("random", "clusters"):
        more = {"clusters": 20} if method == "clusters" else {}
        sampling.sample(connection, method=method, seed=0, per_species=40, **more)
        [(europe,)] = connection.execute(
            "SELECT count(*) FROM candidate WHERE latitude > 40"
        ).fetchall()
        shares[method] = europe / 40
        connection.execute("DELETE FROM kept; INSERT INTO kept SELECT photo_id FROM photo")
    assert shares["random"] > 0.8
    assert shares["clusters"] < 0.6


def test_twenty_observers_are_eight_four_and_eight(connection: Connection) -> None:
    # The example of iNat2017, section 3.2.
    fill(connection, [{"observer": f"p{n}"} for n in range(20)])
    splits.assign(connection, method="observer", seed=0)
    found = connection.execute("SELECT split, count(*) FROM split GROUP BY split").fetchall()
    assert dict(found) == {"test": 8, "val": 4, "train": 8}


@pytest.mark.parametrize("seed", [0, 1])
def test_splits_by_observer_agree_with_a_direct_computation(
    connection: Connection, seed: int
) -> None:
    rows = some_rows(400, seed)
    fill(connection, rows)
    splits.assign(connection, method="observer", seed=seed)
    people: defaultdict[str, defaultdict[str, list[dict[str, Any]]]]
    people = defaultdict(lambda: defaultdict(list))
    for row in rows:
        people[row["species"]][row["observer"]].append(row)
    expected = {}
    for by_person in people.values():
        digest = {p: hashlib.md5(f"{seed}{p}".encode()).hexdigest() for p in by_person}
        order = sorted(by_person, key=lambda p: (len(by_person[p]), digest[p]))
        tested = len(order) * 2 // 5
        all_photos = sum(r["photos"] for p in order[tested:] for r in by_person[p])
        before = 0
        for place, person in enumerate(order):
            side = "test"
            if place >= tested:
                side = "val" if before <= 30 and before < 0.33 * all_photos else "train"
                before += sum(row["photos"] for row in by_person[person])
            for row in by_person[person]:
                expected |= {f"{row['id']}-{n}": side for n in range(row["photos"])}
    assert dict(connection.execute("FROM split").fetchall()) == expected
    assert set(expected.values()) == {"train", "val", "test"}


def test_splits_by_time_and_place(connection: Connection) -> None:
    rows = [*some_rows(200, 4), {"latitude": None, "longitude": None, "day": None}]
    fill(connection, rows)
    splits.assign(connection, method="time", seed=0, since=date(2021, 2, 1))
    sides = connection.execute(
        "SELECT split, count(*) FILTER (WHERE day >= '2021-02-01'), count(*) FROM candidate "
        "JOIN split USING (photo_id) GROUP BY split ORDER BY split"
    ).fetchall()
    later = sum(r["photos"] for r in rows[:-1] if r["day"] >= date(2021, 2, 1))
    earlier = sum(r["photos"] for r in rows[:-1]) - later
    assert sides == [("test", later, later), ("train", 0, earlier + 1)]
    splits.assign(connection, method="place", seed=0, cell=0.5, test_share=0.3)
    mixed = connection.execute(
        "SELECT floor(latitude / .5), floor(longitude / .5) FROM candidate "
        "JOIN split USING (photo_id) GROUP BY ALL HAVING count(DISTINCT split) > 1"
    ).fetchall()
    assert mixed == []
    assert connection.execute("SELECT count(DISTINCT split) FROM split").fetchall() == [(3,)]
    with pytest.raises(CurationRefused, match="since"):
        splits.assign(connection, method="time", seed=0)
    with pytest.raises(CurationRefused, match="cells"):
        splits.assign(connection, method="place", seed=0, cells=2)
