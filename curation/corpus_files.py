"""The files of a curated corpus: iNat24's layout, addresses of images, and what was left out."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from core.licenses import CURATED_NAMES
from curation.sources.darwin_core import RANKS
from curation.sources.tabular import quoted
from curation.tables import Connection
from curation.taxonomy import MappingReport

SPLITS: Final = ("train", "val", "test")
ADDRESSES: Final = "images.csv"
CHECKSUMS: Final = "SHA256SUMS"
LONGEST_LICENSE_TEXT: Final = 2000


def write_corpus(
    connection: Connection, folder: Path, mapping: MappingReport | None = None
) -> None:
    """Write `train.json`, `images.csv` and `SHA256SUMS`, and where there is content for them
    `val.json`, `test.json`, `refused.csv`, `lookalikes.csv` and `mapping.csv`.

    Image ids count from 0 in the order of species and photo ids; the same candidates give the same
    bytes. Images' sizes in pixels are given only where a source gives both the file and its size.
    """
    categories = _categories(connection)
    licenses = connection.execute(
        "SELECT DISTINCT license, license_url FROM candidate ORDER BY ALL"
    ).fetchall()
    license_numbers = {row: number for number, row in enumerate(licenses, start=1)}
    folders = {category["name"]: category["image_dir_name"] for category in categories}
    ids = {category["name"]: category["id"] for category in categories}
    written = []
    with (folder / ADDRESSES).open("w", newline="", encoding="utf-8") as addresses:
        rows = csv.writer(addresses, lineterminator="\n")
        rows.writerow(["file_name", "url", "split", "photo_id", "observation_id", "deployment"])
        first_id = 0
        for split in SPLITS:
            images = _Images(connection, split, first_id, folders, ids, license_numbers, rows)
            if images.count == 0 and split != "train":
                continue
            first_id += images.count
            _write_json(folder / f"{split}.json", categories, licenses, images)
            written.append(f"{split}.json")
    written.append(ADDRESSES)
    for name, sql in _TABLES.items():
        if _write_table(connection, folder / f"{name}.csv", sql):
            written.append(f"{name}.csv")
    if mapping:
        with (folder / "mapping.csv").open("w", newline="", encoding="utf-8") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(["what", "species", "other"])
            table.writerows(mapping.rows())
        written.append("mapping.csv")
    sums = [f"{_sha256(folder / name)}  {name}\n" for name in sorted(written)]
    (folder / CHECKSUMS).write_text("".join(sums))


_TABLES: Final = {
    "refused": "SELECT file, reason, sum(rows) AS rows, min(example) AS example FROM refused "
    "GROUP BY file, reason ORDER BY file, rows DESC, reason",
    "lookalikes": "SELECT species, taken_for FROM confusion "
    "SEMI JOIN (SELECT DISTINCT species FROM candidate) USING (species) "
    "WHERE taken_for IN (SELECT species FROM candidate) ORDER BY ALL",
}


def _write_table(connection: Connection, path: Path, sql: str) -> bool:
    """Write a SELECT as CSV; without rows, write no file and return False."""
    result = connection.execute(sql)
    rows = result.fetchall()
    if not rows:
        return False
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([column[0] for column in result.description or ()])
        writer.writerows(rows)
    return True


def _categories(connection: Connection) -> list[dict[str, Any]]:
    """The kept species as COCO categories, by name."""
    names: dict[str, dict[str, list[str]]] = {}
    for species, language, name in connection.execute(
        "SELECT taxon.name, language, vernacular.name FROM vernacular JOIN taxon USING (taxon_id) "
        "ORDER BY ALL"
    ).fetchall():
        names.setdefault(species, {}).setdefault(language, []).append(name)
    alike = dict(
        connection.execute(
            "SELECT species, min(least(species, taken_for)) FROM "
            "(SELECT species, taken_for FROM confusion UNION "
            "SELECT taken_for, species FROM confusion) WHERE taken_for IN "
            "(SELECT species FROM candidate) GROUP BY species"
        ).fetchall()
    )
    categories = []
    rows = connection.execute(
        f"SELECT species, max(iucn), {', '.join(f'max({quoted(rank)})' for rank in RANKS)} "
        "FROM candidate GROUP BY species ORDER BY species"
    ).fetchall()
    for number, (species, iucn, *lineage) in enumerate(rows):
        ranks = dict(zip(RANKS, lineage, strict=True))
        genus, _, epithet = species.partition(" ")
        ranks["genus"] = ranks["genus"] or genus
        parts = "_".join([f"{number:05d}", *(ranks[rank] or "unknown" for rank in RANKS), epithet])
        own_names = names.get(species, {})
        categories.append(
            {
                "id": number,
                "name": species,
                "common_name": own_names.get("en", [""])[0],
                "vernacular_names": own_names,
                "supercategory": ranks["class"] or ranks["kingdom"],
                **ranks,
                "specific_epithet": epithet,
                "image_dir_name": re.sub(r"[^A-Za-z0-9_.-]+", "_", parts),
                "conservation_status": iucn,
                "lookalike_group": alike.get(species, ""),
            }
        )
    return categories


class _Images:
    """The images of a split and their annotations, streamed."""

    def __init__(
        self,
        connection: Connection,
        split: str,
        first: int,
        folders: dict[str, str],
        ids: dict[str, int],
        licenses: dict[tuple[str, str], int],
        addresses: Any,
    ) -> None:
        self._connection = connection
        self._split, self._first = split, first
        self._folders, self._ids, self._licenses = folders, ids, licenses
        self._addresses = addresses
        [(self.count,)] = connection.execute(
            "SELECT count(*) FROM candidate JOIN split USING (photo_id) WHERE split = ?", [split]
        ).fetchall()

    def rows(self, columns: str) -> Iterator[tuple[Any, ...]]:
        """(image id, columns of a candidate …) in the order of ids."""
        result = self._connection.cursor().execute(
            f"SELECT {columns} FROM candidate JOIN split USING (photo_id) WHERE split = ? "
            "ORDER BY species, photo_id",
            [self._split],
        )
        image_id = self._first
        while batch := result.fetchmany(10_000):
            for row in batch:
                yield image_id, *row
                image_id += 1

    def images(self) -> Iterator[dict[str, Any]]:
        """COCO images; also writes their addresses."""
        columns = (
            "photo_id, observation_id, species, url, license, license_url, rights_holder, "
            "coalesce(strftime(observed_at, '%Y-%m-%d %H:%M:%S'), strftime(day, '%Y-%m-%d')), "
            "latitude, longitude, uncertainty, observer, obscured, elevation, deployment, "
            "license_text"
        )
        for image_id, *row in self.rows(columns):
            (photo, observation, species, url, license_, license_url, holder, moment, latitude,
             longitude, uncertainty, observer, obscured, elevation, deployment,
             license_text) = row  # fmt: skip
            safe = re.sub(r"[^A-Za-z0-9_.-]+", "_", photo)
            file_name = f"{self._split}/{self._folders[species]}/{safe}.jpg"
            self._addresses.writerow([file_name, url, self._split, photo, observation, deployment])
            yield {
                "id": image_id,
                "file_name": file_name,
                "license": self._licenses[license_, license_url],
                "license_text": license_text[:LONGEST_LICENSE_TEXT],
                "rights_holder": holder,
                "date": moment,
                "latitude": latitude,
                "longitude": longitude,
                "location_uncertainty": uncertainty,
                "observer": observer,
                "coordinates_obscured": bool(obscured),
                "elevation": elevation,
            }

    def annotations(self) -> Iterator[dict[str, Any]]:
        """COCO annotations, one an image."""
        for image_id, species in self.rows("species"):
            yield {"id": image_id, "image_id": image_id, "category_id": self._ids[species]}


def _write_json(
    path: Path,
    categories: list[dict[str, Any]],
    licenses: list[tuple[str, str]],
    images: _Images,
) -> None:
    named = [
        {"id": number, "name": CURATED_NAMES.get(code, code) or "Other", "url": url}
        for number, (code, url) in enumerate(licenses, start=1)
    ]
    with path.open("w", encoding="utf-8") as file:
        file.write("{")
        for key, items in (
            ("licenses", iter(named)),
            ("categories", iter(categories)),
            ("images", images.images()),
            ("annotations", images.annotations()),
        ):
            file.write(f'{"" if key == "licenses" else ","}\n"{key}": [')
            for position, item in enumerate(items):
                text = json.dumps(item, ensure_ascii=False)
                file.write(f"{',' if position else ''}\n{text}")
            file.write("]")
        file.write("}\n")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
