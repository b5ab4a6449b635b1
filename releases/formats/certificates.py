"""certificates.csv: the queries' certificates, one row a round; certificates_val.csv: those of the
validation split alone.

    query_id           the query
    round              its number; blank in a last row without draws, of what was unjudged when the
                       release was made, where that is less than the last round left
    pool               how many images the query's candidate list holds
    whole_filter       1 where these are all images of the query's filter, else 0
    found, unjudged    relevant images known, and images that could be drawn, when the round began
    draws, hits        images that it drew, and of these the ones not judged not relevant

In a query's last row, else blank:

    found_at_release   relevant images of the pool
    missing_at_most    relevant images that the pool may hide beside them
    recall_at_least    found_at_release / (found_at_release + missing_at_most); blank for none found
    confidence         of these two, for each query by itself
    rule               the stop rule met when its last part was handed in; blank for none
    reason             why it was completed with something left open

Counts are by the labels that stand in the release; see `labeling.certificates.bounds`. Rows go by
query id, then round.

release_certificate.json, release_certificate_val.json: the release's own certificate, over all its
queries together: the members of `ReleaseCertificate`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from core.csv_rows import spreadsheet_text
from releases.formats.base import Files
from releases.snapshot.certificates import QueryCertificate, certificates
from releases.snapshot.release_certificate import release_certificate
from releases.snapshot.snapshot import Snapshot

CERTIFICATES_FILE: Final = "certificates.csv"
VAL_CERTIFICATES_FILE: Final = "certificates_val.csv"
RELEASE_CERTIFICATE_FILE: Final = "release_certificate.json"
VAL_RELEASE_CERTIFICATE_FILE: Final = "release_certificate_val.json"
COLUMNS: Final = (
    "query_id",
    "round",
    "pool",
    "whole_filter",
    "found",
    "unjudged",
    "draws",
    "hits",
    "found_at_release",
    "missing_at_most",
    "recall_at_least",
    "confidence",
    "rule",
    "reason",
)


def write(snapshot: Snapshot, files: Files) -> None:
    """Write both kinds; nothing without audits."""
    if made := list(certificates(snapshot)):
        confidence = snapshot.header.confidence
        rows = (row for certificate in made for row in certificate_lines(certificate, confidence))
        files.csv(f"certificates{files.labels}.csv", COLUMNS, rows)
    if overall := release_certificate(snapshot):
        text = json.dumps(asdict(overall), indent=2) + "\n"
        files.text(f"release_certificate{files.labels}.json", [text])


def certificate_lines(
    certificate: QueryCertificate, confidence: float
) -> Iterator[tuple[Any, ...]]:
    """The rows of a query, in the order of COLUMNS."""
    query = certificate.query
    bound = (
        certificate.found,
        certificate.missing_at_most,
        certificate.recall_at_least,
        confidence,
        query.rule,
        spreadsheet_text(query.completion_reason),
    )
    last = list(certificate.rounds)[-1]
    for number, counts in certificate.rounds.items():
        yield (
            *(query.query_id, number, certificate.pool, certificate.whole),
            *(counts.found, counts.unjudged, counts.drawn, counts.hits),
            *(bound if number == last else (None,) * len(bound)),
        )
