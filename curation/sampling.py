"""Which observations make a corpus: at random, by observer, or spread over places and seasons."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.tables import Connection, CurationRefused, replace_kept

EARTH_KM: Final = 6371.0088
METHODS: Final = ("random", "observer", "clusters")

_BATCH: Final = 500_000


def sample(
    connection: Connection,
    *,
    method: str,
    seed: int,
    per_species: int,
    **parameters: Any,
) -> None:
    """Keep at most `per_species` observations of each species, with all their photos.

    `random`: the observations with the lowest digests of seed and id. `observer`: one observation
    of each observer in turn, so that many people are included. `clusters` (INQUIRE, appendix H.1):
    see `choose`; parameters `group_km` (10), `clusters` (100), `place_km` (100) and `season_days`
    (30). The same observations and seed give the same sample, whatever the order of rows.
    """
    if method not in METHODS:
        methods = ", ".join(METHODS)
        raise CurationRefused("sampling.method", f"there is no “{method}”; there are {methods}")
    defaults = {"group_km": 10.0, "clusters": 100, "place_km": 100.0, "season_days": 30.0}
    known_parameters = set(defaults) if method == "clusters" else set()
    if unknown := set(parameters) - known_parameters:
        raise CurationRefused("sampling", f"unknown: {', '.join(sorted(unknown))}")
    connection.execute(
        "CREATE OR REPLACE TABLE drawn AS SELECT DISTINCT observation_id, species, observer, "
        "day, latitude, longitude, md5_number_upper(concat(?, ' ', observation_id)) AS lot "
        "FROM candidate",
        [seed],
    )
    if method == "clusters":
        _choose_spread(connection, per_species, {**defaults, **parameters})
    else:
        turn = "row_number() OVER (PARTITION BY species, observer ORDER BY lot, observation_id)"
        first = turn if method == "observer" else "0"
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE chosen AS SELECT observation_id FROM "
            f"(SELECT *, {first} AS turn FROM drawn) QUALIFY row_number() OVER "
            "(PARTITION BY species ORDER BY turn, lot, observation_id) <= ?",
            [per_species],
        )
    replace_kept(
        connection,
        "SELECT photo_id FROM kept JOIN photo USING (photo_id) "
        "WHERE observation_id IN (SELECT observation_id FROM chosen)",
    )
    for table in ("drawn", "chosen"):
        connection.execute(f"DROP TABLE {table}")


def day_groups(
    days: np.ndarray, latitude: np.ndarray, longitude: np.ndarray, *, group_km: float
) -> np.ndarray:
    """Number the observation groups, from 0: observations of the same day, by any observers, that
    are linked by steps of at most `group_km` (INQUIRE, appendix H.1).

    Takes three arrays of n: day numbers, degrees, degrees. Locations are rounded to 0.01° (1.1 km)
    first, so that a thousand observations of a day in a city are some hundred locations.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    cells = np.stack(
        [days, np.rint(latitude * 100), np.rint(longitude * 100)], axis=1, dtype=np.int64,
        casting="unsafe",
    )  # fmt: skip
    locations, location_of = np.unique(cells, axis=0, return_inverse=True)
    # Days are farther apart than any two locations of a day.
    points = np.column_stack(
        [unit_sphere(locations[:, 1] / 100, locations[:, 2] / 100), locations[:, 0] * 4]
    )
    chord = 2 * np.sin(min(group_km / EARTH_KM, np.pi) / 2)
    pairs = cKDTree(points).query_pairs(chord, output_type="ndarray")
    links = coo_array((np.ones(len(pairs), bool), tuple(pairs.T)), shape=(len(locations),) * 2)
    groups: np.ndarray = connected_components(links, directed=False)[1]
    return groups[location_of.reshape(-1)]


def unit_sphere(latitude: np.ndarray, longitude: np.ndarray) -> np.ndarray:
    """Points (n, 3) on the unit sphere for locations in degrees."""
    phi, theta = np.radians(latitude), np.radians(longitude)
    return np.column_stack([np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi)])


def farthest_clusters(points: np.ndarray, count: int) -> np.ndarray:
    """Number the cluster of each of n points, by farthest-point clustering (Gonzalez 1985).

    The first point is the first center; each next center is the point that is farthest from all
    centers. Points belong to the nearest center, in a tie to the earlier one.
    """
    cluster = np.zeros(len(points), np.int64)
    nearest = ((points - points[0]) ** 2).sum(axis=1)
    for number in range(1, min(count, len(points))):
        center = int(nearest.argmax())
        if nearest[center] == 0:
            break
        distance = ((points - points[center]) ** 2).sum(axis=1)
        closer = distance < nearest
        cluster[closer] = number
        nearest[closer] = distance[closer]
    return cluster


def choose(
    *,
    days: np.ndarray,
    latitude: np.ndarray,
    longitude: np.ndarray,
    groups: np.ndarray,
    observers: np.ndarray,
    size: int,
    clusters: int = 100,
    place_km: float = 100.0,
    season_days: float = 30.0,
) -> np.ndarray:
    """The positions of at most `size` of one species' n observations, in the order of choice.

    As in INQUIRE's appendix H.1, the species' observation groups are clustered by a spatio-temporal
    distance, and clusters give one observation in turn, preferring groups and observers that are
    new to the sample. The paper names neither distance nor clustering; here the distance of two
    groups, taken at the mean location and day of the species' observations in them, is
    √((chord through the earth ÷ place_km)² + (days apart ÷ season_days)²), and clusters are those
    of `farthest_clusters`. Among equals the first of the input is chosen, so the input must be in
    random order.
    """
    if len(days) <= size:
        return np.arange(len(days))
    numbers, group = np.unique(groups, return_inverse=True)
    sizes = np.bincount(group)
    space = np.column_stack(
        [unit_sphere(latitude, longitude) * (EARTH_KM / place_km), days / season_days]
    )
    centers = np.column_stack(
        [np.bincount(group, space[:, axis]) / sizes for axis in range(space.shape[1])]
    )
    # The first center is the group of the first observation, which is random.
    order = np.argsort(_first_seen(group, len(numbers)))
    cluster_of = np.empty(len(numbers), np.int64)
    cluster_of[order] = farthest_clusters(centers[order].astype(np.float32), clusters)
    cluster = cluster_of[group]
    by_cluster = np.argsort(cluster, kind="stable")
    starts = np.flatnonzero(np.diff(cluster[by_cluster], prepend=-1))
    waiting = [list_ for list_ in np.split(by_cluster, starts[1:]) if len(list_)]
    observer = np.unique(observers, return_inverse=True)[1]
    new_group = np.ones(len(numbers), bool)
    new_observer = np.ones(len(observers), bool)
    chosen: list[int] = []
    while len(chosen) < size:
        for number, members in enumerate(waiting):
            if len(members) == 0:
                continue
            novelty = 2 * new_group[group[members]] + new_observer[observer[members]]
            best = int(novelty.argmax())
            pick = int(members[best])
            waiting[number] = np.delete(members, best)
            new_group[group[pick]] = new_observer[observer[pick]] = False
            chosen.append(pick)
            if len(chosen) == size:
                break
    return np.array(chosen)


def _first_seen(labels: np.ndarray, count: int) -> np.ndarray:
    """The position of each label's first occurrence."""
    first = np.full(count, len(labels))
    np.minimum.at(first, labels, np.arange(len(labels)))
    return first


def _choose_spread(connection: Connection, size: int, parameters: dict[str, Any]) -> None:
    group_km = float(parameters.pop("group_km"))
    connection.execute(
        "CREATE OR REPLACE TABLE grouped (observation_id VARCHAR, group_number BIGINT)"
    )
    group_count = 0
    # Whole days at a time; observations without a day or location are left out.
    for table in _whole(
        connection,
        "SELECT day, observation_id, latitude, longitude FROM drawn WHERE day IS NOT NULL "
        "AND latitude IS NOT NULL ORDER BY day, observation_id",
        "day",
    ):
        groups = day_groups(
            _days(table), *(np.asarray(table[c]) for c in ("latitude", "longitude")),
            group_km=group_km,
        )  # fmt: skip
        _insert(connection, "grouped", table["observation_id"], pa.array(groups + group_count))
        group_count += int(groups.max()) + 1
    connection.execute("CREATE OR REPLACE TEMP TABLE chosen (observation_id VARCHAR)")
    for table in _whole(
        connection,
        "SELECT species, observation_id, day, latitude, longitude, group_number, "
        "md5_number_upper(observer) AS person FROM drawn JOIN grouped USING (observation_id) "
        "ORDER BY species, lot, observation_id",
        "species",
    ):
        arrays: dict[str, Any] = {
            "days": _days(table),
            "latitude": np.asarray(table["latitude"]),
            "longitude": np.asarray(table["longitude"]),
            "groups": np.asarray(table["group_number"]),
            "observers": np.asarray(table["person"]),
        }
        _, begins = np.unique(np.asarray(table["species"]).astype(str), return_index=True)
        begins = np.append(np.sort(begins), len(table))
        picks = [
            begin + choose(**{k: v[begin:end] for k, v in arrays.items()}, size=size, **parameters)
            for begin, end in pairwise(begins)
        ]
        _insert(connection, "chosen", table["observation_id"].take(np.concatenate(picks)))
    connection.execute("DROP TABLE grouped")


def _days(table: pa.Table) -> np.ndarray:
    return np.asarray(table["day"].cast(pa.int32())).astype(np.int64)


def _insert(connection: Connection, table: str, *columns: Any) -> None:
    connection.register(
        "rows_to_insert", pa.table(list(columns), [f"c{n}" for n in range(len(columns))])
    )
    connection.execute(f"INSERT INTO {table} FROM rows_to_insert")
    connection.unregister("rows_to_insert")


def _whole(connection: Connection, sql: str, key: str) -> Iterator[pa.Table]:
    """The rows of an ordered SELECT in tables that each hold all rows of their keys."""
    pending: list[pa.RecordBatch] = []
    reader = connection.cursor().sql(sql).to_arrow_reader(_BATCH)
    for batch in reader:
        if len(batch) == 0:
            continue
        keys = batch[key]
        last = keys[-1]
        if pending and pending[-1][key][-1] == last and keys[0] == last:
            pending.append(batch)
            continue
        first = pc.index(keys, last).as_py()
        if pending or first:
            yield pa.Table.from_batches([*pending, batch.slice(0, first)])
        pending = [batch.slice(first)]
    if pending:
        yield pa.Table.from_batches(pending)
