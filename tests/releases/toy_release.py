"""Releases that are ready, on which runs can be scored.

release = toy_release()                     # see its docstring for what it holds
release = ready_release(queries=[query(3)], pairs=[pair(3, 7, True)], images=[image(7)])

Both need the fixture `var_dir`; with the fixture `images`, the corpus is the toy's six images.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone

from releases.models import Release
from releases.snapshot.release_files import JudgmentRow
from releases.snapshot.snapshot import FixedImage, Pair, SnapshotImage, SnapshotQuery
from tests.releases.snapshots import MODEL, header, image, pair, query, write_snapshot

#: query id -> the toy's judged images and whether they are relevant.
TOY_JUDGED: Mapping[int, Mapping[int, bool]] = {
    1: {1: True, 2: False, 3: False, 4: True},
    2: {2: True, 5: False},
    3: {3: True, 4: False, 5: True, 6: True},
    4: {1: False},
}
TOY_FIXED: Mapping[int, Sequence[int]] = {
    1: [2, 1, 3, 4],
    2: [5, 6, 2, 1],
    3: [3, 5, 6, 1],
    4: [1, 2, 3, 4],
}


def ready_release(
    name: str = "Toy",
    version: int = 1,
    *,
    queries: Sequence[SnapshotQuery],
    pairs: Sequence[Pair] = (),
    images: Sequence[SnapshotImage] = (),
    fixed: Sequence[FixedImage] = (),
    judgments: Sequence[JudgmentRow] = (),
    origin: str = Release.Origin.MADE,
    previous: Release | None = None,
    corpus_images: int = 6,
    test_labels: str = Release.TestLabels.PUBLIC,
    halves_secret: str = "",
    **values: Any,
) -> Release:
    """A made release of these rows, with its snapshot on disk; `values` change the header."""
    shown = header(
        name=name,
        version=version,
        origin=origin,
        corpus_images=corpus_images,
        **{"rerank_model": MODEL if fixed else "", **values},
    )
    release = Release.objects.create(
        name=name,
        version=version,
        origin=origin,
        previous=previous,
        test_labels=test_labels,
        halves_secret=halves_secret,
    )
    snapshot = write_snapshot(
        release.directory / "snapshot",
        header=shown,
        queries=queries,
        pairs=pairs,
        images=images,
        fixed=fixed,
        judgments=judgments,
    )
    file_list = [
        {
            "name": f"snapshot/{path.name}",
            "size": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "access": "labels",
        }
        for path in sorted(snapshot.directory.iterdir())
    ]
    splits = [one.split for one in queries]
    release.val_queries, release.test_queries = splits.count("val"), splits.count("test")
    release.positives = sum(one.relevant for one in pairs)
    release.header = {"name": name, "version": version}
    release.file_list = file_list
    release.made_at = timezone.now()
    release.save()
    return release


def toy_release(name: str = "Toy", version: int = 1, **values: Any) -> Release:
    """Six images and four queries, 1 of the validation split and the others of the test split.

    Relevant: 1, 4 of query 1; 2 of 2; 3, 5, 6 of 3; none of 4. Fixed lists of four images: of 1 fit
    (2 relevant) and of 2 (1 relevant, 6 and 1 unjudged), but not of 3 (3 of 4) and 4 (none).
    """
    return ready_release(
        name,
        version,
        **{
            "queries": [
                query(1, "a stork on a nest", split="val"),
                query(2, "a red fox", category="Species ID", supercategory="Species"),
                query(3, "a dead bird", category="Human Impact", supercategory="Context"),
                query(4, "an empty nest"),
            ],
            "pairs": [
                pair(query_id, image_id, relevant)
                for query_id, judged in TOY_JUDGED.items()
                for image_id, relevant in judged.items()
            ],
            "images": [image(number) for number in range(1, 7)],
            "fixed": [
                FixedImage(query_id=query_id, rank=rank, image_id=image_id, score=1 - rank / 8)
                for query_id, image_ids in TOY_FIXED.items()
                for rank, image_id in enumerate(image_ids, start=1)
            ],
            **values,
        },
    )
