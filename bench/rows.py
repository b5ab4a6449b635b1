"""Made-up rows of a benchmark of INQUIRE's size over a large corpus, without image files.

Django must be set up on a database of the benchmark's own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench import harness

QUERIES: Final = 250
VAL_QUERIES: Final = 50
ANNOTATORS: Final = 10
MODEL: Final = "rows"
COMPLETE: Final = 10
FLAGGED: Final = 40
WITHDRAWN: Final = 50
#: From this number of images on, loading is faster without indexes, which are created afterwards.
BULK: Final = 100_000
#: Prime to every corpus size asked for, so that a list holds no image twice.
STEP: Final = 15_485_863
CENTERS: Final = 2000
SPECIES_OF_A_GENUS: Final = 5

_SYLLABLES: Final = [consonant + vowel for consonant in "bcdfglmnprstvxzh" for vowel in "aeiou"]
_JUDGMENT: Final = (
    "INSERT INTO labeling_judgment (query_id, image_id, annotator_id, relevance, source,"
    " candidate_list_id, rank, seconds, created_at, updated_at) "
)


def write_coco(path: Path, *, images: int, species: int) -> None:
    """Write a COCO file in iNat21's layout with `images` of `species`, the same each time; ids
    begin at 0, and neighboring images are of different categories.
    """
    drawn = random.Random(24)
    categories = [
        {"id": n, "kingdom": "Animalia", "phylum": "Chordata", "class": "Aves"}
        | {"order": f"Order{n // 400}", "family": f"Family{n // 40}", "genus": f"Genus{n // 5}"}
        | {"specific_epithet": f"species{n}", "name": f"Genus{n // 5} species{n}"}
        | {"common_name": f"Common Thing {n}", "supercategory": "Birds"}
        | {"image_dir_name": f"{n:05}_Animalia_Chordata_Aves_Genus{n // 5}_species{n}"}
        for n in range(species)
    ]

    def image(n: int) -> dict[str, Any]:
        folder = categories[category_of(n, species)]["image_dir_name"]
        return {
            "id": n,
            "width": 500,
            "height": 375 + n % 125,
            "license": n % 8,
            "file_name": f"train/{folder}/{drawn.getrandbits(128):032x}.jpg",
            "rights_holder": f"Observer {drawn.randrange(100_000)}",
            "date": f"2019-{n % 12 + 1:02}-{n % 28 + 1:02} {n % 24:02}:00:00+00:00",
            "latitude": round(drawn.random() * 170 - 85, 10),
            "longitude": round(drawn.random() * 358 - 179, 10),
            "location_uncertainty": n % 1000 if n % 4 else None,
        }

    of = ({"id": n, "image_id": n, "category_id": category_of(n, species)} for n in range(images))
    licenses = ({"id": n, "name": f"License {n}", "url": f"https://a.org/{n}/"} for n in range(8))
    sections: dict[str, Any] = {"images": map(image, range(images)), "categories": categories}
    with path.open("w", encoding="utf-8") as file:
        file.write('{"info": {"description": "made up", "year": 2024}')
        for name, records in (sections | {"annotations": of, "licenses": licenses}).items():
            file.write(f', "{name}": [')
            for number, record in enumerate(records):
                file.write((", " if number else "") + json.dumps(record))
            file.write("]")
        file.write("}")


def category_of(image: int, species: int) -> int:
    """The category's id of an image of `write_coco`."""
    return image * 7919 % species


def clustered(
    count: int, dimension: int, *, seed: int, batch: int = 20_000
) -> Iterator[NDArray[np.float16]]:
    """`count` unit vectors (n, dimension), `batch` rows at a time, clustered like those of images:
    around CENTERS points of the unit sphere, two of a cluster at a cosine of about 0.5. The same
    for the same seed.
    """
    centers = np.random.default_rng(7).normal(size=(CENTERS, dimension))
    centers = (centers / np.linalg.norm(centers, axis=1, keepdims=True)).astype(np.float32)
    drawn = np.random.default_rng(seed)
    for start in range(0, count, batch):
        rows = min(batch, count - start)
        wide = drawn.standard_normal((rows, dimension), dtype=np.float32) / np.sqrt(dimension)
        wide += centers[drawn.integers(CENTERS, size=rows)]
        wide /= np.linalg.norm(wide, axis=1, keepdims=True)
        yield wide.astype(np.float16)


def query_vectors(count: int, dimension: int) -> NDArray[np.float16]:
    """`count` vectors (count, dimension) to search with, from the same clusters."""
    return next(clustered(count, dimension, seed=9, batch=count))


def fill_clustered(images: int, dimension: int) -> None:
    """Fill an empty, migrated database with `images`, 500 of each species, and a clustered vector
    of each image under MODEL.
    """
    make_species(-(-images // 500))
    make_images(1, images)
    store_vectors(1, clustered(images, dimension, seed=8), dimension)
    harness.sql("VACUUM ANALYZE")


def store_vectors(
    first: int, batches: Iterator[NDArray[np.float16]], dimension: int, *, model: str = MODEL
) -> None:
    """Store vectors under a model for the images from the id `first` on."""
    from django.db import transaction

    from core.locks import transaction_lock
    from retrieval.embedding.embedding_models import (
        embedding_model_get_or_create,
        embedding_model_lock,
    )
    from retrieval.embedding.store import embeddings_copy

    embedding_model = embedding_model_get_or_create(name=model, dimension=dimension)
    for vectors in batches:
        ids = np.arange(first, first + len(vectors), dtype=np.int64)
        with transaction.atomic():
            transaction_lock(embedding_model_lock(embedding_model), shared=True)
            embeddings_copy(model=embedding_model, image_ids=ids, vectors=vectors, fresh=True)
        first += len(vectors)


def make_species(count: int) -> None:
    """Species with a scientific name and four vernacular names each, as different as names are."""
    from labeling.queries.categories import ICONIC_GROUPS
    from retrieval.corpus.models import Species, SpeciesName

    all_species = Species.objects.bulk_create(
        Species(
            scientific_name=f"{_word(n // SPECIES_OF_A_GENUS, 1)} {_word(n, 2).lower()}",
            kingdom="Animalia",
            phylum="Chordata",
            class_name="Aves",
            order=f"{_word(n // 500, 3)}formes",
            family=f"{_word(n // 50, 4)}idae",
            genus=_word(n // SPECIES_OF_A_GENUS, 1),
            specific_epithet=_word(n, 2).lower(),
            iconic_group=ICONIC_GROUPS[n % len(ICONIC_GROUPS)],
        )
        for n in range(count)
    )
    SpeciesName.objects.bulk_create(
        SpeciesName(
            species=species,
            language=language,
            name=name,
            search_text=name.lower().replace("à", "a"),
        )
        for n, species in enumerate(all_species)
        for language, name in (
            ("", species.scientific_name),
            ("de", f"{_word(n, 5)}{_word(n // 9, 6).lower()}"),
            ("en", f"{_word(n % 40, 7)} {_word(n, 8)}"),
            ("es", f"{_word(n // 7, 9)} {_word(n % 90, 10)}"),
            ("fr", f"{_word(n // 3, 11)} à {_word(n % 60, 12)}"),
        )
    )


def _word(number: int, kind: int) -> str:
    """A word of three syllables, different for each number below 512,000."""
    remaining, base = (number * 104_729 + kind * 7_919) % len(_SYLLABLES) ** 3, len(_SYLLABLES)
    return "".join(_SYLLABLES[remaining // base**digit % base] for digit in range(3)).title()


def make_images(first: int, last: int) -> None:
    """Images with the ids from `first` to `last`, of all species in turn, with five licenses."""
    harness.sql(
        "INSERT INTO retrieval_image (id, dataset, source_id, file_name, sha256, format, width,"
        " height, size_bytes, species_id, license, license_url, rights_holder, observed_at,"
        " latitude, longitude, location_uncertainty, created_at) "
        "SELECT i, 'rows', i::text,"
        " 'train/' || lpad((i % 10000)::text, 5, '0') || '_Animalia/' || md5(i::text)::uuid"
        " || '.jpg', encode(sha256(i::text::bytea), 'hex'), 'JPEG', 500, 375, 60000,"
        " s.first + i % s.count, l.name, l.url, 'observer ' || i % 5000,"
        " timestamptz '2012-01-01T00:00:00Z' + i * interval '1 minute',"
        " i % 170 - 85 + 0.125, i % 359 - 179 + 0.0625, i % 1000, now() "
        f"FROM generate_series({first}, {last}) i"
        " CROSS JOIN (SELECT min(id) AS first, count(*) AS count FROM retrieval_species) s"
        " JOIN (VALUES (0, 'CC-BY-NC 4.0', 'https://creativecommons.org/licenses/by-nc/4.0/'),"
        " (1, 'CC-BY 4.0', 'https://creativecommons.org/licenses/by/4.0/'),"
        " (2, 'CC0 1.0', 'https://creativecommons.org/publicdomain/zero/1.0/'),"
        " (3, 'CC-BY-NC-ND 4.0', 'https://creativecommons.org/licenses/by-nc-nd/4.0/'),"
        " (4, 'all rights reserved', '')) l(n, name, url) ON l.n = i % 5"
    )


def make_list(query: Any, model: Any, vector: list[float], *, depth: int, total: int) -> Any:
    """The frozen list of a query, without its candidates."""
    from django.utils import timezone

    from labeling.candidates.models import CandidateList

    return CandidateList.objects.create(
        query=query,
        model_name=model.name,
        embedding_model=model,
        text=query.text,
        depth=depth,
        size=depth,
        total=total,
        text_vector=vector,
        frozen_at=timezone.now(),
        checksum="0" * 64,
    )


def fill(
    *,
    images: int,
    species: int,
    judgments: int,
    depth: int,
    complete: int,
    queries: int = QUERIES,
) -> None:
    """Fill an empty, migrated database: `images` of `species`, each with a unit vector of eight
    values under MODEL; `queries` with candidate lists of `depth`, the last `complete` of them
    completed and the others open; judgments of their first candidates.

    Raises ValueError for a depth beyond the number of images.
    """
    from annotator.models import User
    from retrieval.embedding.embedding_models import embedding_model_get_or_create

    if depth > images:
        raise ValueError(f"a list of {depth} candidates needs as many images, not {images}")
    make_species(species)
    # Checking references would take most of the time, and these rows have none that is wrong.
    harness.sql("SET session_replication_role = replica")
    indexes = _drop_indexes() if images >= BULK else []
    make_images(1, images)
    for statement in indexes:
        harness.sql(statement)
    model = embedding_model_get_or_create(name=MODEL, dimension=8)
    harness.sql(
        "INSERT INTO retrieval_embedding (model_id, image_id, created_at, vector) SELECT %s, id,"
        " now(), ('[' || cos(id) || ',' || sin(id) || ',0,0,0,0,0,0]')::halfvec"
        " FROM retrieval_image ORDER BY id",
        [model.pk],
    )
    people = [
        User.objects.create(username=f"ann{number}", role="annotator").pk
        for number in range(ANNOTATORS)
    ]
    _make_queries(model, queries, images, depth, complete)
    harness.sql(
        "INSERT INTO labeling_candidate (list_id, rank, image_id, score) "
        "SELECT l.id, r, (q.query_id * 104729 + r::bigint * %s) %% %s + 1, 0.3 - r / 100000.0"
        " FROM labeling_candidatelist l JOIN labeling_query q ON q.id = l.query_id,"
        " generate_series(1, %s) r",
        [STEP, images, depth],
    )
    # One in six of them is relevant, earlier ones more often.
    harness.sql(
        f"{_JUDGMENT} SELECT l.query_id, c.image_id, (%s)[1 + q.query_id %% %s],"
        " CASE WHEN c.rank * 7919 %% 1000 < greatest(20, 350 - c.rank / 2) THEN 'relevant'"
        " WHEN c.rank %% 97 = 0 THEN 'unsure' ELSE 'not_relevant' END,"
        " 'list', l.id, c.rank, 1.5 + c.rank %% 7, now(), now() "
        "FROM labeling_candidate c JOIN labeling_candidatelist l ON l.id = c.list_id"
        " JOIN labeling_query q ON q.id = l.query_id "
        "ORDER BY c.rank, c.list_id LIMIT %s",
        [people, ANNOTATORS, judgments],
    )
    harness.sql("SET session_replication_role = origin")
    harness.sql("VACUUM ANALYZE")


def fill_for_pages(
    *, images: int, species: int, judgments: int, depth: int, queries: int = QUERIES
) -> None:
    """Fill an empty, migrated database like one in use: as `fill` does, with COMPLETE completed
    queries, a second person's judgments of a fifth of the judged images, which seldom differ, an
    event of each judgment, a few images that are flagged or withdrawn, and people of every role.
    """
    from annotator.models import User
    from retrieval.corpus.counts import image_counts_check

    fill(
        images=images,
        species=species,
        judgments=judgments,
        depth=depth,
        complete=COMPLETE,
        queries=queries,
    )
    for role in ("reviewer", "admin", "researcher"):
        User.objects.create(username=role, role=role)
    harness.sql("SET session_replication_role = replica")
    harness.sql(
        f"{_JUDGMENT} SELECT j.query_id, j.image_id, other.id,"
        " CASE WHEN j.rank %% 100 = 0 THEN 'relevant' ELSE j.relevance END,"
        " 'list', j.candidate_list_id, j.rank, 2, now(), now() "
        "FROM labeling_judgment j JOIN labeling_query q ON q.id = j.query_id"
        " JOIN annotator_user other ON other.username = 'ann' || (q.query_id + 1) %% %s "
        "WHERE j.rank %% 5 = 0",
        [ANNOTATORS],
    )
    harness.sql(
        "INSERT INTO labeling_judgmentevent (query_id, image_id, annotator_id, client_id,"
        " previous, relevance, source, candidate_list_id, rank, seconds, acted_at, made_at) "
        "SELECT query_id, image_id, annotator_id, gen_random_uuid(), '', relevance, source,"
        " candidate_list_id, rank, seconds, now(), now() FROM labeling_judgment ORDER BY id"
    )
    first_list = (
        "'', (SELECT min(id) FROM annotator_user), now() FROM labeling_candidate c"
        " JOIN labeling_query q ON q.current_list_id = c.list_id WHERE q.query_id = 0 AND c.rank"
    )
    harness.sql(
        "INSERT INTO retrieval_imageflag (state, kind, image_id, note, raised_by_id, raised_at)"
        f" SELECT 'open', 'person', image_id, {first_list} <= {FLAGGED}"
    )
    harness.sql(
        "INSERT INTO retrieval_imagewithdrawal (image_id, note, withdrawn_by_id, withdrawn_at)"
        f" SELECT image_id, {first_list} BETWEEN {FLAGGED + 1} AND {FLAGGED + WITHDRAWN}"
    )
    harness.sql("SET session_replication_role = origin")
    image_counts_check(repair=True)
    harness.sql(
        "INSERT INTO retrieval_embeddingcount (model_id, embedded, fingerprint) "
        "SELECT model_id, count(*), sum(retrieval_embedding_mark(image_id, created_at)) "
        "FROM retrieval_embedding GROUP BY model_id"
    )
    harness.sql("VACUUM ANALYZE")


def _drop_indexes() -> list[str]:
    """Drop the images' indexes except the primary key; returns the statements that recreate
    them."""
    statements = harness.sql(
        "SELECT format('ALTER TABLE retrieval_image DROP CONSTRAINT %I', conname),"
        " format('ALTER TABLE retrieval_image ADD CONSTRAINT %I %s', conname,"
        "        pg_get_constraintdef(oid))"
        " FROM pg_constraint WHERE conrelid = 'retrieval_image'::regclass AND contype = 'u'"
        " UNION ALL "
        "SELECT format('DROP INDEX %I', relname), pg_get_indexdef(indexrelid)"
        " FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid"
        " WHERE indrelid = 'retrieval_image'::regclass AND NOT indisunique"
    )
    for drop, _ in statements:
        harness.sql(drop)
    return [make for _, make in statements]


def _make_queries(model: Any, count: int, images: int, depth: int, complete: int) -> None:
    from labeling.queries.categories import CATEGORIES, ICONIC_GROUPS
    from labeling.queries.models import Query

    categories = list(CATEGORIES)
    queries = Query.objects.bulk_create(
        Query(
            query_id=number,
            text=f"an animal that does the thing number {number}",
            category=categories[number % len(categories)],
            iconic_group=ICONIC_GROUPS[number % len(ICONIC_GROUPS)],
            split=Query.Split.VAL if number < VAL_QUERIES else Query.Split.TEST,
            state=Query.State.OPEN if number < count - complete else Query.State.COMPLETE,
        )
        for number in range(count)
    )
    for query in queries:
        query.current_list = make_list(query, model, [1, 0, 0, 0], depth=depth, total=images)
    Query.objects.bulk_update(queries, ["current_list"])
