"""Every page and reading endpoint of the API, with who opens it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from labeling.models import Candidate, Query
from retrieval.access import Role
from retrieval.models import Job, Species


@dataclass(frozen=True, slots=True)
class Page:
    """One address, and the role of the person who asks for it."""

    name: str
    path: str
    role: str = Role.REVIEWER


@dataclass(frozen=True, slots=True)
class Known:
    """What addresses name: primary keys, a genus, and that with two letters swapped."""

    query: int
    image: int
    species: int
    name: str
    slip: str
    job: int | None = None
    release: int | None = None

    @classmethod
    def found(cls, release: int | None = None) -> Known:
        """The first query, its list's first image and that one's species."""
        query = Query.objects.exclude(current_list=None).earliest("query_id")
        first = Candidate.objects.filter(list=query.current_list_id).earliest("rank")
        species = Species.objects.get(images=first.image_id)
        name = species.genus
        jobs = Job.objects.order_by("-pk").values_list("pk", flat=True)
        return cls(
            query=query.pk,
            image=first.image_id,
            species=species.pk,
            name=name,
            slip=name[:2] + name[3:1:-1] + name[4:],
            job=jobs.first(),
            release=release,
        )


ADMIN_MODELS: Final = (
    "retrieval/image",
    "retrieval/species",
    "retrieval/embeddingmodel",
    "retrieval/imageflag",
    "retrieval/imagewithdrawal",
    "retrieval/job",
    "retrieval/jobitemerror",
    "retrieval/imageroot",
    "labeling/query",
    "labeling/querytransition",
    "labeling/candidatelist",
    "labeling/judgment",
    "labeling/judgmentevent",
    "benchmark/release",
    "annotator/user",
)


def pages(known: Known) -> list[Page]:
    """The pages, then the API, then the admin site. Those that rank the corpus (a search with a
    text, and "more like this") are not among them.
    """
    query, image = f"queries/{known.query}/", f"images/{known.image}/"
    found = [
        Page("Dashboard", "/"),
        Page("Dashboard of an annotator", "/", Role.ANNOTATOR),
        Page("Dashboard, filtered and sorted", "/?search=number+1&state=open&sort=-streak"),
        Page("Search", "/search/", Role.ANNOTATOR),
        Page("Corpus", "/corpus/", Role.ANNOTATOR),
        Page("Corpus, page 3", "/corpus/?page=3", Role.ANNOTATOR),
        Page("Corpus, species found", f"/corpus/?species={known.name}", Role.ANNOTATOR),
        Page("Labelling", f"/{query}label/", Role.ANNOTATOR),
        Page("Query", f"/{query}"),
        Page("Query of an annotator", f"/{query}", Role.ANNOTATOR),
        Page("Query, edited", f"/{query}edit/", Role.ADMIN),
        Page("Query, deleted", f"/{query}delete/", Role.ADMIN),
        Page("New query", "/queries/new/", Role.ADMIN),
        Page("Import of queries", "/queries/import/", Role.ADMIN),
        Page("Open drafts", "/queries/open/", Role.ADMIN),
        Page("Review", f"/{query}review/"),
        Page("Completion", f"/{query}complete/"),
        Page("Flagged images", "/flags/"),
        Page("Withdrawn images", "/flags/?state=withdrawn"),
        Page("Releases", "/releases/", Role.RESEARCHER),
        Page("Splits", "/releases/split/", Role.ADMIN),
        Page("Leaderboard", "/leaderboard/", Role.RESEARCHER),
        Page("Runs", "/runs/", Role.RESEARCHER),
        Page("API: queries", "/api/queries/"),
        Page("API: queries of an annotator", "/api/queries/", Role.ANNOTATOR),
        Page("API: query", f"/api/{query}"),
        Page("API: outline of a list", f"/api/{query}outline/", Role.ANNOTATOR),
        Page("API: candidates", f"/api/{query}candidates/?limit=60", Role.ANNOTATOR),
        Page(
            "API: candidates, far down",
            f"/api/{query}candidates/?start_rank=2000&limit=60",
            Role.ANNOTATOR,
        ),
        Page("API: candidates at ranks", f"/api/{query}candidates/?ranks=1,7,900", Role.ANNOTATOR),
        Page("API: facets of a list", f"/api/{query}facets/", Role.ANNOTATOR),
        Page(
            "API: matching candidates",
            f"/api/{query}matching/?month=5&judged=no&flagged=no",
            Role.ANNOTATOR,
        ),
        Page("API: what is new", f"/api/{query}changes/?cursor=0", Role.ANNOTATOR),
        Page("API: reference", f"/api/{query}reference/", Role.ANNOTATOR),
        Page("API: judgments", f"/api/{query}judgments/"),
        Page("API: history of an image", f"/api/{query}history/?image={known.image}"),
        Page("API: preferences", "/api/preferences/labelling/", Role.ANNOTATOR),
        Page("API: image", f"/api/{image}", Role.ANNOTATOR),
        Page("API: flags of an image", f"/api/{image}flags/", Role.ANNOTATOR),
        Page("API: flagged images", "/api/flags/"),
        Page("API: withdrawn images", "/api/flags/?state=withdrawn"),
        Page("API: species", "/api/species/", Role.ANNOTATOR),
        Page("API: species picker", f"/api/species/?search={known.name}", Role.ANNOTATOR),
        Page(
            "API: species picker, two letters",
            f"/api/species/?search={known.name[:2]}",
            Role.ANNOTATOR,
        ),
        Page("API: species picker, a slip", f"/api/species/?search={known.slip}", Role.ANNOTATOR),
        Page("API: one species", f"/api/species/{known.species}/", Role.ANNOTATOR),
        Page("API: groups by name", f"/api/species/groups/?search={known.name}", Role.ANNOTATOR),
        Page(
            "API: groups of a species",
            f"/api/species/groups/?species={known.species}",
            Role.ANNOTATOR,
        ),
        Page("API: jobs", "/api/jobs/", Role.ADMIN),
        Page("API: releases", "/api/releases/", Role.RESEARCHER),
        Page("API: runs", "/api/runs/", Role.RESEARCHER),
        Page("API: submissions left", "/api/submissions/", Role.RESEARCHER),
        Page("Admin", "/admin/", Role.ADMIN),
        *(Page(f"Admin: {name}", f"/admin/{name}/", Role.ADMIN) for name in ADMIN_MODELS),
        Page("Admin: images of a data set", "/admin/retrieval/image/?dataset=rows", Role.ADMIN),
        Page("Admin: image by id", f"/admin/retrieval/image/?q={known.image}", Role.ADMIN),
        Page("Admin: images by species", f"/admin/retrieval/image/?q={known.name}", Role.ADMIN),
        Page("Admin: one image", f"/admin/retrieval/image/{known.image}/change/", Role.ADMIN),
        Page("Admin: judgments of a query", "/admin/labeling/judgment/?q=0", Role.ADMIN),
        Page("Admin: events of a query", "/admin/labeling/judgmentevent/?q=0", Role.ADMIN),
    ]
    if known.job is not None:
        found += [
            Page("Job", f"/jobs/{known.job}/", Role.ADMIN),
            Page("API: job", f"/api/jobs/{known.job}/", Role.ADMIN),
        ]
    if known.release is not None:
        release = f"releases/{known.release}/"
        found += [
            Page("Release", f"/{release}", Role.RESEARCHER),
            Page("Statistics of a release", f"/{release}statistics/", Role.RESEARCHER),
            Page("Leaderboard of a release", f"/{release}leaderboard/", Role.RESEARCHER),
            Page("Correlations of a release", f"/{release}correlations/", Role.RESEARCHER),
            Page("Submission to a release", f"/{release}submit/", Role.RESEARCHER),
            Page("API: release", f"/api/{release}", Role.RESEARCHER),
            Page("API: runs on a release", f"/api/{release}runs/", Role.RESEARCHER),
        ]
    return found
