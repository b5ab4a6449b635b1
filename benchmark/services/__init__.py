"""Making releases, giving them out, and checking them."""

from benchmark.services.giving import ReleaseUnusable, release_copy, release_export
from benchmark.services.making import release_fill, release_make
from benchmark.services.requests import JOB_KIND, release_claim, release_create, release_retry
from benchmark.services.verifying import Finding, release_verify

__all__ = [
    "JOB_KIND",
    "Finding",
    "ReleaseUnusable",
    "release_claim",
    "release_copy",
    "release_create",
    "release_export",
    "release_fill",
    "release_make",
    "release_retry",
    "release_verify",
]
