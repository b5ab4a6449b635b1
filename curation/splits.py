"""The splits of a corpus's photos: training, validation and testing."""

from __future__ import annotations

from datetime import date
from typing import Any, Final

from curation.tables import Connection, CurationRefused

TEST_SHARE: Final = 0.4
VALIDATION_PHOTOS: Final = 30
VALIDATION_SHARE: Final = 0.33


def assign(connection: Connection, *, method: str, seed: int, **parameters: Any) -> None:
    """Fill `split` with `train`, `val` or `test` for each photo that is kept.

    `observer` (iNat2017, section 3.2; `test_share`, `validation_photos`, `validation_share`): for
    each species, the 40 % of observers with the fewest observations are for testing. Of the other
    observers, those with the fewest are added to validation until it has more than 30 photos or
    33 % of theirs. No observer is in two splits of one species; for another species it may differ.

    `time` (`since`, a date): later observations are for testing (CrypticBio's CommonUnseen).

    `place` (`cell` in degrees, `test_share`, `validation_share`): whole cells of a grid are held
    out, chosen by digests of seed and cell; photos without a location are for training.

    `deployment` (`test_share`, `validation_share`): whole deployments of camera traps are held
    out, chosen by digests of seed and deployment; elsewhere whole observations.

    Photos of a deployment share their background. So with every method a deployment is in one
    split: the one that most of its photos are in.
    """
    if method not in _METHODS:
        methods = ", ".join(_METHODS)
        raise CurationRefused("splits.method", f"there is no “{method}”; there are {methods}")
    sql, defaults = _METHODS[method]
    if unknown := set(parameters) - set(defaults):
        raise CurationRefused("splits", f"unknown: {', '.join(sorted(unknown))}")
    values = {"seed": str(seed), **defaults, **parameters}
    if method == "time" and not isinstance(values["since"], date):
        raise CurationRefused("splits.since", "a date such as 2024-09-01 is needed")
    connection.execute("DELETE FROM split")
    used = {name: value for name, value in values.items() if f"${name}" in sql}
    connection.execute(f"INSERT INTO split {sql}", used)
    connection.execute(_JOIN_DEPLOYMENTS)


_BY_OBSERVER: Final = """
WITH person AS (
    SELECT species, observer, count(DISTINCT observation_id) AS observations, count(*) AS photos
      FROM candidate GROUP BY species, observer
), placed AS (
    SELECT *, row_number() OVER (PARTITION BY species
                                 ORDER BY observations, md5($seed || observer), observer) AS place,
           count(*) OVER (PARTITION BY species) AS people FROM person
), sided AS (
    SELECT *, place <= floor($test_share * people + 1e-9) AS for_test FROM placed
), counted AS (
    SELECT *, sum(photos) OVER (PARTITION BY species, for_test) AS all_photos,
           coalesce(sum(photos) OVER (
               PARTITION BY species, for_test ORDER BY place
               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS before FROM sided
)
SELECT photo_id, CASE WHEN for_test THEN 'test'
                      WHEN before <= $validation_photos AND before < $validation_share * all_photos
                      THEN 'val' ELSE 'train' END
  FROM candidate JOIN counted USING (species, observer)
"""

_BY_TIME: Final = """
SELECT photo_id, CASE WHEN day >= $since THEN 'test' ELSE 'train' END FROM candidate
"""

_HELD_OUT: Final = """
WITH placed AS (
    SELECT photo_id, md5_number_upper($seed || ' ' || {key})::DOUBLE / 18446744073709551616 AS lot
      FROM candidate
)
SELECT photo_id, CASE WHEN lot < $test_share THEN 'test'
                      WHEN lot < $test_share + $validation_share THEN 'val' ELSE 'train' END
  FROM placed
"""
_BY_PLACE: Final = _HELD_OUT.format(
    key="floor(latitude / $cell) || ' ' || floor(longitude / $cell)"
)
_BY_DEPLOYMENT: Final = _HELD_OUT.format(key="if(deployment = '', observation_id, deployment)")

_JOIN_DEPLOYMENTS: Final = """
UPDATE split SET split = most FROM (
    WITH placed AS (
        SELECT photo_id, deployment, split FROM candidate JOIN split USING (photo_id)
         WHERE deployment <> ''
    ), largest AS (
        SELECT deployment, split AS most FROM placed GROUP BY deployment, split
       QUALIFY row_number() OVER (PARTITION BY deployment ORDER BY count(*) DESC, split) = 1
    )
    SELECT photo_id AS id, most FROM placed JOIN largest USING (deployment)
) WHERE photo_id = id AND split <> most
"""

_METHODS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "observer": (
        _BY_OBSERVER,
        {
            "test_share": TEST_SHARE,
            "validation_photos": VALIDATION_PHOTOS,
            "validation_share": VALIDATION_SHARE,
        },
    ),
    "time": (_BY_TIME, {"since": None}),
    "place": (_BY_PLACE, {"cell": 1.0, "test_share": 0.2, "validation_share": 0.1}),
    "deployment": (_BY_DEPLOYMENT, {"test_share": 0.2, "validation_share": 0.1}),
}
