"""No page reads a large table whole, and none runs a statement for each row that it shows.

A few thousand rows are made and analysed; then PostgreSQL is told that the large tables hold as
many as those of a corpus of millions (`pg_class.reltuples`, which its planner scales by the tables'
real blocks), so that it plans as it would there. Blocks stay few, so that reading a whole table
looks cheaper than it would be, never dearer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import URLResolver, get_resolver, resolve

from bench.page_list import Page, clients, pages
from bench.plans import is_large, watched
from bench.rows import FLAGGED, MODEL, fill_for_pages
from retrieval.embedding.embedding_models import embedding_model_get_or_create

pytestmark = pytest.mark.django_db(transaction=True)

#: How many times the rows that there are: 4.8 million images, 1.25 million candidates …
TIMES = {"retrieval_image": 1600, "retrieval_embedding": 1600, "labeling_candidate": 50}
OTHERS = 10

#: The most statements of a page once its process has seen it, however many rows it shows; a file is
#: written page by page.
MOST_STATEMENTS, MOST_OF_A_FILE = 25, 40

#: Addresses that write, give a file or an image, or rank the corpus; those of one run need a run,
#: and read its file and its scores.
NOT_READ = {
    "query-from-search", "query-transition", "query-team", "query-refresh", "release-retry",
    "benchmark-delete", "practice-query", "query-finds", "upload-preview",
    "upload-files", "upload-table", "upload-unpack", "upload-image", "upload-template",
    "query-boxes-import",
    "query-boxes-ask", "detection-run", "query-reader", "query-reader-queue",
    "species-run", "species-run-file", "species-run-json", "reader-calibrate",
    "login", "logout", "oidc-log-in", "oidc-callback", "healthz", "healthz-web",
    "image", "thumbnail", "release-file", "release-archive",
    "account-tokens", "account-mail", "account-token-revoke", "password-link", "first-admin",
    "person-link", "person-deactivate", "person-reactivate", "manage-backup",
    "leaderboard-export", "api-leaderboard", "bias-file", "fuse-runs", "close-board",
    "api-release-file", "api-release-archive",
    "api-schema", "api-search",
    "api-query-similar",
    # They count the images that have each field, for admins.
    "custom-fields", "custom-field", "custom-field-delete", "api-custom-field-list",
    # They count a data set's images where that is asked for.
    "api-dataset-figures", "api-dataset-found", "api-dataset-releases",
    # Counting ends in time, and a CSV names all images.
    "search", "api-image-matches", "api-image-counts", "api-image-matches-csv",
}  # fmt: skip
OF_RUNS = ("runs/<id:pk>", "runs/compare/", "rerank/")


@pytest.fixture
def many_rows(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Client]:
    """A database that looks large, and clients of people by role."""
    settings.EMBEDDING_MODEL = MODEL
    settings.VAR_DIR = tmp_path
    monkeypatch.setattr("retrieval.datasets.views.COUNTED_AT_ONCE", 0)
    # An earlier model's partition, emptied and analyzed, as a test before this one may leave it.
    embedding_model_get_or_create(name="toy/emptied", dimension=8)
    fill_for_pages(images=3000, species=200, judgments=25_000, depth=100)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE retrieval_embedding")
    pretend()
    return clients()


def pretend() -> None:
    """Make PostgreSQL believe in more rows, with as many in the indexes."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.oid, t.relname FROM pg_class t JOIN pg_class c ON c.oid = t.oid OR c.oid IN"
            " (SELECT indexrelid FROM pg_index WHERE indrelid = t.oid)"
            " WHERE t.relkind = 'r' AND t.relnamespace = 'public'::regnamespace"
        )
        for oid, table in cursor.fetchall():
            if is_large(table):
                times = [n for name, n in TIMES.items() if table.startswith(name)]
                cursor.execute(
                    "UPDATE pg_class SET reltuples = reltuples * %s WHERE oid = %s",
                    [times[0] if times else OTHERS, oid],
                )


def asked(clients: dict[str, Client], page: Page, *, plans: bool) -> Any:
    with watched(plans=plans) as seen:
        answer = clients[page.role].get(page.path)
        if answer.streaming:
            list(answer.streaming_content)
    assert answer.status_code in (200, 302), f"{page.name}: {answer.status_code}"
    return seen


def addresses(patterns: Iterable[Any], before: str = "") -> Iterator[tuple[str, str]]:
    """(name, route) of every address that answers GET, without the admin site's."""
    for one in patterns:
        route = f"{before}{one.pattern}"
        if isinstance(one, URLResolver):
            if one.app_name != "admin":
                yield from addresses(one.url_patterns, route)
            continue
        of_set = getattr(one.callback, "actions", None)
        of_class = getattr(one.callback, "cls", None)
        reads = "get" in of_set if of_set else of_class is None or hasattr(of_class, "get")
        if one.name and reads:
            yield one.name, route


def test_no_page_reads_a_large_table_whole(many_rows: dict[str, Client]) -> None:
    for sql in ("SELECT count(*) FROM retrieval_image", "SELECT count(*) FROM labeling_judgment"):
        with watched(plans=True) as seen, connection.cursor() as cursor:
            cursor.execute(sql)
        assert seen.whole, "what reads a table whole is not noticed"
    there = {
        name
        for name, route in addresses(get_resolver().url_patterns)
        if not any(part in route for part in OF_RUNS)
    }
    looked_at = {resolve(page.path.partition("?")[0]).url_name for page in pages()}
    assert there <= looked_at | NOT_READ
    whole, statements = {}, {}
    for page in pages():
        if found := asked(many_rows, page, plans=True).whole:
            whole[page.name] = found
        statements[page.name] = len(asked(many_rows, page, plans=False).statements)
    assert whole == {}
    assert statements.pop("Log, as CSV") <= MOST_OF_A_FILE
    assert {name: n for name, n in statements.items() if n > MOST_STATEMENTS} == {}
    flagged = many_rows["reviewer"].get("/api/flags/").json()
    assert flagged["count"] == FLAGGED
