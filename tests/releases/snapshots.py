"""Snapshots of releases for tests: rows with defaults, a small one with nasty texts, an empty one.

snapshot = toy_snapshot(tmp_path)                    # see its docstring for what it holds
snapshot = write_snapshot(tmp_path, queries=[query(3)], pairs=[pair(3, 7, True)],
                          images=[image(7)])
images, digests = toy_image_files(tmp_path, 2)        # real files, found by SHA-256
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from PIL import Image

from releases.formats.base import ImageFiles, Writer, WrittenFile, format_write
from releases.snapshot.open_snapshot import OpenSnapshot
from releases.snapshot.release_files import JudgmentRow
from releases.snapshot.snapshot import (
    AuditedImage,
    DrawnRound,
    FieldValue,
    FixedImage,
    Header,
    ListModel,
    ModelRank,
    Pair,
    PoolImage,
    QueryVector,
    ReleasedAudit,
    Seed,
    Snapshot,
    SnapshotImage,
    SnapshotQuery,
    SnapshotWriter,
)

MODEL = "toy/clip"

#: Query texts as people write them, and as they shouldn't.
COMMAS = 'A mongoose, standing "upright"; alert '
FORMULA = "=cmd()|' /C calc'!A0"
LINES = "two\tlines\nof text: 狐 🦊 café </title> & <b>bold</b>"
UNJUDGED = "a query that nobody judged"
ALL_RELEVANT = "-1+1 @penguins"


def header(**values: Any) -> Header:
    """What is told of a release; every field can be replaced."""
    defaults = {
        "name": "Toy & Söhne",
        "version": 2,
        "made_at": "2026-05-01T12:00:00+00:00",
        "made_by": "ada",
        "software": "inquire-annotator 0.1.0",
        "origin": "made",
        "corpus_images": 12,
        "corpus_species": 3,
        "corpus_fingerprint": "f" * 64,
        "models": [ListModel(name=MODEL, depths=[5], queries=4)],
        "rerank_model": MODEL,
        "include_images": False,
        "consensus": "A reviewer's judgment decides, else the majority; a tie is not relevant.",
        "annotators": 2,
    }
    return Header(**{**defaults, **values})


def query(query_id: int, text: str = "a stork on a nest", **values: Any) -> SnapshotQuery:
    """A query of the test split over the whole corpus."""
    defaults = {
        "supercategory": "Behavior",
        "category": "Mating, Courtship, Reproduction",
        "iconic_group": "Birds",
        "split": "test",
        "species": [],
        "guidelines": "",
        "scientific_terms": False,
        "model": MODEL,
        "list_depth": 5,
        "list_size": 5,
        "list_total": 12,
        "list_checksum": "c" * 64,
        "annotators": 1,
        "seconds": 12.5,
    }
    return SnapshotQuery(query_id=query_id, text=text, **{**defaults, **values})


def pair(query_id: int, image_id: int, relevant: bool, **values: Any) -> Pair:
    """A pair that one person judged, at a rank that is its image's id."""
    defaults = {"votes": 1, "rank": image_id}
    return Pair(query_id=query_id, image_id=image_id, relevant=relevant, **{**defaults, **values})


def judgment(
    query_id: int, image_id: int, relevance: str = "relevant", **values: Any
) -> JudgmentRow:
    """The first person's judgment within the list, after 2.5 seconds."""
    defaults = {"annotator": 1, "rank": image_id, "seconds": 2.5, "source": "list"}
    return JudgmentRow(
        query_id=query_id, image_id=image_id, relevance=relevance, **{**defaults, **values}
    )


def image(image_id: int, **values: Any) -> SnapshotImage:
    """A white stork with a place, a date and a license, whose file isn't here."""
    defaults = {
        "dataset": "toy",
        "source_id": str(image_id),
        "file_name": f"train/00019_Animalia_Ciconia_ciconia/{image_id}.jpg",
        "sha256": "",
        "width": 10,
        "height": 8,
        "scientific_name": "Ciconia ciconia",
        "vernacular_name": "White Stork",
        "kingdom": "Animalia",
        "phylum": "Chordata",
        "class_name": "Aves",
        "order": "Ciconiiformes",
        "family": "Ciconiidae",
        "genus": "Ciconia",
        "iconic_group": "Birds",
        "license": "CC BY-NC 4.0",
        "license_url": "https://creativecommons.org/licenses/by-nc/4.0/",
        "rights_holder": "Jo Doe",
        "observed_at": "2022-06-01T10:00:00+00:00",
        "latitude": 52.5,
        "longitude": -13.25,
        "location_uncertainty": 30.0,
    }
    return SnapshotImage(image_id=image_id, **{**defaults, **values})


#: An image of which nothing is known but its path, as `image`'s changes.
BARE = {
    "width": 0,
    "height": 0,
    "scientific_name": "",
    "vernacular_name": "",
    "kingdom": "",
    "phylum": "",
    "class_name": "",
    "order": "",
    "family": "",
    "genus": "",
    "iconic_group": "",
    "license": "",
    "license_url": "",
    "rights_holder": "",
    "observed_at": "",
    "latitude": None,
    "longitude": None,
    "location_uncertainty": None,
}


def write_snapshot(
    directory: Path,
    *,
    header: Header,
    queries: Iterable[SnapshotQuery] = (),
    pairs: Iterable[Pair] = (),
    judgments: Iterable[JudgmentRow] = (),
    images: Iterable[SnapshotImage] = (),
    fixed: Iterable[FixedImage] = (),
    vectors: Iterable[QueryVector] = (),
    rounds: Iterable[DrawnRound] = (),
    pools: Iterable[PoolImage] = (),
    release_audits: Iterable[ReleasedAudit] = (),
    audited: Iterable[AuditedImage] = (),
    seeds: Iterable[Seed] = (),
    model_ranks: Iterable[ModelRank] | None = None,
    custom_fields: Iterable[FieldValue] | None = None,
) -> Snapshot:
    """Write a snapshot from rows in their order into `directory`, made where it isn't there.

    Without `model_ranks` it has no such table, as one that was imported, and without
    `custom_fields` as one of a corpus that has none.
    """
    directory.mkdir(parents=True, exist_ok=True)
    writer = SnapshotWriter(directory)
    writer.header(header)
    writer.table("queries", queries)
    writer.table("pairs", pairs)
    writer.table("judgments", judgments)
    writer.table("images", images)
    writer.table("fixed", fixed)
    writer.table("vectors", vectors)
    writer.table("rounds", rounds)
    writer.table("pools", pools)
    writer.table("release_audits", release_audits)
    writer.table("audited", audited)
    writer.table("seeds", seeds)
    if model_ranks is not None:
        writer.table("model_ranks", model_ranks)
    if custom_fields is not None:
        writer.table("custom_fields", custom_fields)
    return Snapshot(directory)


def empty_snapshot(directory: Path) -> Snapshot:
    """A release without queries, images and fixed lists."""
    nothing = header(
        corpus_images=0, corpus_species=0, corpus_fingerprint="", models=[], rerank_model="",
        annotators=0,
    )  # fmt: skip
    return write_snapshot(directory, header=nothing)


def toy_queries() -> list[SnapshotQuery]:
    """Five queries: two of the validation split (3, 21) and three of the test split."""
    return [
        query(3, COMMAS, split="val", species=["Ciconia ciconia"], guidelines='Not "lying", <i>'),
        query(8, FORMULA, iconic_group="", scientific_terms=True, annotators=2),
        query(13, LINES, category="Species ID", supercategory="Species", guidelines="a\nb\tc & d"),
        query(21, ALL_RELEVANT, split="val", category="Human Impact", supercategory="Context"),
        query(34, UNJUDGED, model="", list_depth=0, list_size=0, list_total=0, list_checksum="",
              annotators=0, seconds=0.0),
    ]  # fmt: skip


def toy_pairs() -> list[Pair]:
    """Relevant: 1, 2 of query 3; 1, 7 of 8; 5 of 13; 9, 10, 11 of 21."""
    relevant = {3: {1, 2}, 8: {1, 7}, 13: {5}, 21: {9, 10, 11}}
    judged = {3: [1, 2, 3, 4], 8: [1, 6, 7, 8], 13: [5, 6], 21: [9, 10, 11]}
    return [
        pair(
            query_id,
            image_id,
            image_id in relevant[query_id],
            votes=2 if query_id == 8 else 1,
            rank=None if (query_id, image_id) == (8, 7) else image_id,
        )
        for query_id, image_ids in judged.items()
        for image_id in image_ids
    ]


def toy_judgments() -> list[JudgmentRow]:
    """The judgments behind `toy_pairs`: query 8 by two people, who differ about image 6 alone."""
    rows = []
    for one in toy_pairs():
        relevance = "relevant" if one.relevant else "not_relevant"
        rows.append(judgment(one.query_id, one.image_id, relevance, rank=one.rank))
        if one.votes == 2:
            second = "unsure" if one.image_id != 6 and not one.relevant else relevance
            second = "relevant" if one.image_id == 6 else second
            rows.append(
                judgment(one.query_id, one.image_id, second, annotator=2, rank=one.rank,
                         seconds=4.0, source="search")
            )  # fmt: skip
    return rows


def toy_images(digests: Iterable[str] = ()) -> list[SnapshotImage]:
    """Images 1 to 12, of which 10 and 11 are bare; `digests` are the files of the first ones."""
    fox = {
        "scientific_name": "Vulpes vulpes", "vernacular_name": 'Fox, "red"', "order": "Carnivora",
        "class_name": "Mammalia", "family": "Canidae", "genus": "Vulpes", "iconic_group": "Mammals",
    }  # fmt: skip
    changes: dict[int, dict[str, Any]] = {
        2: {"license": "CC0", "license_url": "", "rights_holder": ""},
        3: {"license": "all rights reserved", "license_url": "", "rights_holder": "=1+1"},
        4: {"license": "", "license_url": ""},
        5: {**fox, "rights_holder": 'Müller, "狐"\n<b>', "file_name": 'train/a, "b"/5 🦊.jpg'},
        6: {**fox, "license": "CC-BY-ND", "license_url": "", "latitude": None, "longitude": None},
        7: {"latitude": 0.0, "longitude": 180.0, "location_uncertainty": None},
        8: {"license": "made up, for fun", "license_url": "https://example.org/licence"},
        9: {"scientific_name": "Aptenodytes forsteri", "genus": "Aptenodytes", "order": "",
            "family": "Spheniscidae", "vernacular_name": "皇帝ペンギン", "observed_at": ""},
        10: BARE,
        11: BARE,
    }  # fmt: skip
    files = dict(enumerate(digests, start=1))
    return [
        image(number, **{**changes.get(number, {}), "sha256": files.get(number, "")})
        for number in range(1, 13)
    ]


def toy_fixed() -> list[FixedImage]:
    """Fixed lists of five images: of query 3 fit (2 relevant), 8 fit (1 relevant, image 12
    unjudged), 13 not fit (none), 21 not fit (3 of 5), 34 not fit (unjudged)."""
    lists = {3: [4, 1, 2, 3, 9], 8: [12, 7, 6, 8, 2], 13: [1, 2, 3, 4, 6], 21: [9, 10, 11, 1, 2],
             34: [1, 2, 3, 4, 5]}  # fmt: skip
    return [
        FixedImage(query_id=query_id, rank=rank, image_id=image_id, score=round(0.5 - rank / 64, 6))
        for query_id, image_ids in lists.items()
        for rank, image_id in enumerate(image_ids, start=1)
    ]


def toy_snapshot(
    directory: Path, *, digests: Iterable[str] = (), fixed: bool = True, **values: Any
) -> Snapshot:
    """A small release with nasty texts: `toy_queries`, `toy_pairs`, `toy_judgments`,
    `toy_image_files` and, unless `fixed` is false, `toy_fixed`.

    `digests` are the SHA-256 of the first images' files; `values` change the header.
    """
    if not fixed:
        values = {"rerank_model": "", **values}
    return write_snapshot(
        directory,
        header=header(**values),
        queries=toy_queries(),
        pairs=toy_pairs(),
        judgments=toy_judgments(),
        images=toy_images(digests),
        fixed=toy_fixed() if fixed else (),
    )


def no_image_files(image_id: int, file_name: str, sha256: str) -> bytes | None:
    """Finds no image's file."""
    return None


def format_files(
    write: Writer, snapshot: Snapshot, directory: Path, image_files: ImageFiles = no_image_files
) -> list[WrittenFile]:
    """Write the files of one format below `directory`; by name."""
    return format_write(write, OpenSnapshot(snapshot), directory, image_files)


def toy_image_files(directory: Path, count: int) -> tuple[ImageFiles, list[str]]:
    """Small JPEG files, what finds them by SHA-256, and their SHA-256s."""
    directory.mkdir(parents=True, exist_ok=True)
    found = {}
    for number in range(count):
        path = directory / f"{number}.jpg"
        Image.new("RGB", (10, 8), (20 * number % 256, 99, 200)).save(path, "JPEG")
        found[hashlib.sha256(path.read_bytes()).hexdigest()] = path.read_bytes()
    return (lambda image_id, file_name, sha256: found.get(sha256)), list(found)
