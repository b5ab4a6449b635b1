"""What goes into a release, streamed from the database, and the releases that there are."""

from benchmark.selectors.fixed_lists import (
    FIXED_DEPTH,
    fixed_lists,
    released_fixed_lists,
)
from benchmark.selectors.images import Corpus, corpus, released_images
from benchmark.selectors.labels import (
    Effort,
    complete_query_count,
    released_judgment_count,
    released_judgments,
    released_queries,
)
from benchmark.selectors.releases import (
    LONG_FIELDS,
    FileGroup,
    access_of,
    archive_for,
    difference_for,
    file_groups_for,
    files_for,
    refused_images_for,
    release_error,
    release_file_entry,
    release_file_path,
    release_find,
    release_names,
    release_steps,
    release_versions,
    releases,
)
from retrieval.selectors.moments import snapshot

__all__ = [
    "FIXED_DEPTH",
    "LONG_FIELDS",
    "Corpus",
    "Effort",
    "FileGroup",
    "access_of",
    "archive_for",
    "complete_query_count",
    "corpus",
    "difference_for",
    "file_groups_for",
    "files_for",
    "fixed_lists",
    "refused_images_for",
    "release_error",
    "release_file_entry",
    "release_file_path",
    "release_find",
    "release_names",
    "release_steps",
    "release_versions",
    "released_fixed_lists",
    "released_images",
    "released_judgment_count",
    "released_judgments",
    "released_queries",
    "releases",
    "snapshot",
]
