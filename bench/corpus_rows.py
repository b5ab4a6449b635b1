"""Rows of a benchmark of INQUIRE's size over a large corpus, without any picture.

Django must be set up on a database of the benchmark's own.
"""

from __future__ import annotations

from typing import Final

from django.contrib.auth import get_user_model
from django.db import connection
from django.utils import timezone

from labeling.categories import CATEGORIES, ICONIC_GROUPS
from labeling.models import CandidateList, Query
from retrieval.access import Role
from retrieval.models import Embedding, EmbeddingModel, Image, Species, SpeciesName
from retrieval.services.counts import image_counts_check
from retrieval.services.embedding_models import embedding_model_get_or_create

QUERIES: Final = 250
VAL_QUERIES: Final = 50
DEPTH: Final = 5000
ANNOTATORS: Final = 10
MODEL: Final = "rows"
COMPLETE: Final = 10
FLAGGED: Final = 40
WITHDRAWN: Final = 50
#: So many images are loaded faster without their indexes, which are made afterwards.
BULK: Final = 100_000
#: Prime to every corpus size asked for, so that a list holds no image twice.
STEP: Final = 15_485_863

_SYLLABLES: Final = [one + two for one in "bcdfglmnprstvxzh" for two in "aeiou"]
_LICENSES: Final = (
    ("CC-BY-NC 4.0", "https://creativecommons.org/licenses/by-nc/4.0/"),
    ("CC-BY 4.0", "https://creativecommons.org/licenses/by/4.0/"),
    ("CC0 1.0", "https://creativecommons.org/publicdomain/zero/1.0/"),
    ("CC-BY-NC-ND 4.0", "https://creativecommons.org/licenses/by-nc-nd/4.0/"),
    ("all rights reserved", ""),
)


def fill(*, images: int, species: int, judgments: int) -> None:
    """Fill an empty, migrated database: `images` of `species`, QUERIES completed queries with
    candidate lists of DEPTH, and `judgments` of their first candidates."""
    _species(species)
    with connection.cursor() as cursor:
        # These rows are right by their making: checks of references and two indexes that no release
        # reads would take most of the time.
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("DROP INDEX image_sha256")
        cursor.execute("ALTER TABLE retrieval_image DROP CONSTRAINT image_source_unique")
    _images(images, species)
    people = [_person(f"ann{number}", Role.ANNOTATOR) for number in range(ANNOTATORS)]
    model = embedding_model_get_or_create(name=MODEL, dimension=4)
    embedded_at = timezone.now()
    # The fixed lists come from the candidate lists, so one embedding stands for all.
    Embedding.objects.create(
        model=model, image=Image(pk=1), vector=[1, 0, 0, 0], created_at=embedded_at
    )
    _queries(model, images, depth=DEPTH, state=Query.State.COMPLETE)
    _candidates(images, depth=DEPTH)
    _judgments(judgments, people)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def fill_for_pages(
    *, images: int, species: int, judgments: int, depth: int, dimension: int = 8
) -> None:
    """Fill an empty, migrated database as one that people work on: `images` of `species`, each with
    an embedding of `dimension` values, and every index; QUERIES queries, the last COMPLETE of them
    completed and the others open, with candidate lists of `depth`; `judgments` of their first
    candidates with their events, a fifth of them by two people; a few images that are flagged or
    withdrawn; people of every role.

    Raises ValueError for a depth beyond the number of images.
    """
    if depth > images:
        raise ValueError(f"a list of {depth} candidates needs as many images, not {images}")
    _species(species)
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
    indexes = _indexes_dropped() if images >= BULK else []
    _images(images, species)
    with connection.cursor() as cursor:
        for statement in indexes:
            cursor.execute(statement)
    people = [_person(f"ann{number}", Role.ANNOTATOR) for number in range(ANNOTATORS)]
    for role in (Role.REVIEWER, Role.ADMIN, Role.RESEARCHER):
        _person(role.value, role)
    model = embedding_model_get_or_create(name=MODEL, dimension=dimension)
    _embeddings(model)
    _queries(model, images, depth=depth, state=Query.State.OPEN)
    _candidates(images, depth=depth)
    _judgments(judgments, people)
    _opinions_and_events()
    _set_aside()
    Query.objects.filter(query_id__gte=QUERIES - COMPLETE).update(state=Query.State.COMPLETE)
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = origin")
    image_counts_check(repair=True)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO retrieval_embeddingcount (model_id, embedded, fingerprint) "
            "SELECT model_id, count(*), sum(retrieval_embedding_mark(image_id, created_at)) "
            "FROM retrieval_embedding GROUP BY model_id"
        )
        cursor.execute("VACUUM ANALYZE")


def judged_pairs_copied(path: str) -> int:
    """Write the judged pairs to a file by a bare COPY, as a reference for time; how many."""
    with connection.cursor() as cursor, open(path, "wb") as file:
        cursor.copy_expert(
            "COPY (SELECT query_id, image_id, relevance FROM labeling_judgment "
            "ORDER BY query_id, image_id) TO STDOUT",
            file,
        )
        return int(cursor.rowcount)


def _species(count: int) -> None:
    """Species with a scientific name and four vernacular ones each, of syllables, so that they are
    as unlike as names are.
    """
    made = Species.objects.bulk_create(
        Species(
            scientific_name=f"{_word(number // 5, 1).title()} {_word(number, 2)}",
            kingdom="Animalia",
            phylum="Chordata",
            class_name="Aves",
            order=f"{_word(number // 500, 3).title()}formes",
            family=f"{_word(number // 50, 4).title()}idae",
            genus=_word(number // 5, 1).title(),
            specific_epithet=_word(number, 2),
            iconic_group=ICONIC_GROUPS[number % len(ICONIC_GROUPS)],
        )
        for number in range(count)
    )
    SpeciesName.objects.bulk_create(
        SpeciesName(
            species=one, language=language, name=name, search_text=name.lower().replace("à", "a")
        )
        for number, one in enumerate(made)
        for language, name in (
            ("", one.scientific_name),
            ("de", f"{_word(number, 5)}{_word(number // 9, 6)}".title()),
            ("en", f"{_word(number % 40, 7)} {_word(number, 8)}".title()),
            ("es", f"{_word(number // 7, 9)} {_word(number % 90, 10)}".title()),
            ("fr", f"{_word(number // 3, 11)} à {_word(number % 60, 12)}".title()),
        )
    )


def _word(number: int, kind: int) -> str:
    """A word of three syllables, for each number below 512,000 another."""
    left = (number * 104_729 + kind * 7_919) % len(_SYLLABLES) ** 3
    word = ""
    for _ in range(3):
        left, place = divmod(left, len(_SYLLABLES))
        word += _SYLLABLES[place]
    return word


def _images(count: int, species: int) -> None:
    licenses = ", ".join(f"('{name}', '{url}')" for name, url in _LICENSES)
    with connection.cursor() as cursor:
        cursor.execute("SELECT min(id) FROM retrieval_species")
        first_species = cursor.fetchone()[0]
        cursor.execute(
            "INSERT INTO retrieval_image (id, dataset, source_id, file_name, sha256, format, width,"
            " height, size_bytes, species_id, license, license_url, rights_holder, observed_at,"
            " latitude, longitude, location_uncertainty, created_at) "
            "SELECT i, 'rows', i::text,"
            " 'train/species_' || i %% %(species)s || '/' || md5(i::text) || '.jpg',"
            " encode(sha256(i::text::bytea), 'hex'), 'JPEG', 500, 375, 60000,"
            " %(first)s + i %% %(species)s, l.name, l.url, 'observer ' || i %% 5000,"
            " timestamptz '2012-01-01T00:00:00Z' + i * interval '1 minute',"
            " i %% 170 - 85 + 0.125, i %% 359 - 179 + 0.0625, i %% 1000, now() "
            f"FROM generate_series(1, %(count)s) i JOIN (SELECT row_number() OVER () - 1 AS n,"
            f" name, url FROM (VALUES {licenses}) v(name, url)) l ON l.n = i %% {len(_LICENSES)}",
            {"species": species, "first": first_species, "count": count},
        )


def _indexes_dropped() -> list[str]:
    """Drop the images' indexes but the primary key; the statements that make them again."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT format('ALTER TABLE retrieval_image DROP CONSTRAINT %I', conname),"
            " format('ALTER TABLE retrieval_image ADD CONSTRAINT %I %s', conname,"
            "        pg_get_constraintdef(oid))"
            " FROM pg_constraint WHERE conrelid = 'retrieval_image'::regclass AND contype = 'u'"
            " UNION ALL "
            "SELECT format('DROP INDEX %I', relname), pg_get_indexdef(indexrelid)"
            " FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid"
            " WHERE indrelid = 'retrieval_image'::regclass AND NOT indisunique"
        )
        found = cursor.fetchall()
        for drop, _ in found:
            cursor.execute(drop)
    return [make for _, make in found]


def _embeddings(model: EmbeddingModel) -> None:
    """One for each image: a unit vector at an angle of its own in the first two columns."""
    rest = ",0" * (model.dimension - 2)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO retrieval_embedding (model_id, image_id, created_at, vector) "
            f"SELECT %s, id, now(), ('[' || cos(id) || ',' || sin(id) || '{rest}]')::halfvec"
            " FROM retrieval_image ORDER BY id",
            [model.pk],
        )


def _person(name: str, role: Role) -> int:
    person = get_user_model().objects.create(username=name, role=role)
    return int(person.pk)


def _queries(model: EmbeddingModel, images: int, *, depth: int, state: str) -> None:
    categories = list(CATEGORIES)
    queries = Query.objects.bulk_create(
        Query(
            query_id=number,
            text=f"an animal that does the thing number {number}",
            category=categories[number % len(categories)],
            iconic_group=ICONIC_GROUPS[number % len(ICONIC_GROUPS)],
            split=Query.Split.VAL if number < VAL_QUERIES else Query.Split.TEST,
            state=state,
        )
        for number in range(QUERIES)
    )
    lists = CandidateList.objects.bulk_create(
        CandidateList(
            query=query,
            model_name=model.name,
            embedding_model=model,
            text=query.text,
            depth=depth,
            size=min(depth, images),
            total=images,
            text_vector=[1, 0, 0, 0],
            frozen_at=timezone.now(),
            checksum="0" * 64,
        )
        for query in queries
    )
    for query, made in zip(queries, lists, strict=True):
        query.current_list = made
    Query.objects.bulk_update(queries, ["current_list"])


def _candidates(images: int, *, depth: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO labeling_candidate (list_id, rank, image_id, score) "
            "SELECT l.id, r, (q.query_id * 104729 + r::bigint * %s) %% %s + 1,"
            " 0.3 - r / 100000.0 FROM labeling_candidatelist l"
            " JOIN labeling_query q ON q.id = l.query_id, generate_series(1, %s) r",
            [STEP, images, min(depth, images)],
        )


def _judgments(count: int, people: list[int]) -> None:
    """The first candidates of each list, one in six of them relevant, the earlier the likelier."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO labeling_judgment (query_id, image_id, annotator_id, relevance, source,"
            " candidate_list_id, rank, seconds, created_at, updated_at) "
            "SELECT l.query_id, c.image_id, (%s)[1 + q.query_id %% %s],"
            " CASE WHEN c.rank * 7919 %% 1000 < greatest(20, 350 - c.rank / 2) THEN 'relevant'"
            " WHEN c.rank %% 97 = 0 THEN 'unsure' ELSE 'not_relevant' END,"
            " 'list', l.id, c.rank, 1.5 + c.rank %% 7, now(), now() "
            "FROM labeling_candidate c JOIN labeling_candidatelist l ON l.id = c.list_id"
            " JOIN labeling_query q ON q.id = l.query_id "
            "ORDER BY c.rank, c.list_id LIMIT %s",
            [people, len(people), count],
        )


def _opinions_and_events() -> None:
    """A second annotator on a fifth of the judged images, seldom of another opinion, and the event
    of each judgment.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO labeling_judgment (query_id, image_id, annotator_id, relevance, source,"
            " candidate_list_id, rank, seconds, created_at, updated_at) "
            "SELECT j.query_id, j.image_id, other.id,"
            " CASE WHEN j.rank %% 100 = 0 THEN 'relevant' ELSE j.relevance END,"
            " 'list', j.candidate_list_id, j.rank, 2, now(), now() "
            "FROM labeling_judgment j JOIN labeling_query q ON q.id = j.query_id"
            " JOIN annotator_user other ON other.username = 'ann' || (q.query_id + 1) %% %s "
            "WHERE j.rank %% 5 = 0",
            [ANNOTATORS],
        )
        cursor.execute(
            "INSERT INTO labeling_judgmentevent (query_id, image_id, annotator_id, client_id,"
            " previous, relevance, source, candidate_list_id, rank, seconds, acted_at, made_at) "
            "SELECT query_id, image_id, annotator_id, gen_random_uuid(), '', relevance, source,"
            " candidate_list_id, rank, seconds, now(), now() FROM labeling_judgment ORDER BY id"
        )


def _set_aside() -> None:
    """A few of the first list's images are flagged, a few more are withdrawn."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO retrieval_imageflag (image_id, kind, note, state, raised_by_id, raised_at)"
            " SELECT image_id, 'person', '', 'open', (SELECT min(id) FROM annotator_user), now()"
            " FROM labeling_candidate c JOIN labeling_query q ON q.current_list_id = c.list_id"
            " WHERE q.query_id = 0 AND c.rank BETWEEN 1 AND %s",
            [FLAGGED],
        )
        cursor.execute(
            "INSERT INTO retrieval_imagewithdrawal (image_id, note, withdrawn_by_id, withdrawn_at)"
            " SELECT image_id, '', (SELECT min(id) FROM annotator_user), now()"
            " FROM labeling_candidate c JOIN labeling_query q ON q.current_list_id = c.list_id"
            " WHERE q.query_id = 0 AND c.rank BETWEEN %s AND %s",
            [FLAGGED + 1, FLAGGED + WITHDRAWN],
        )
