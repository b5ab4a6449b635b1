"""Every page and reading endpoint of the API, with who opens it."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any, Final, NamedTuple

import numpy as np
from django.conf import settings
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import Resolver404, resolve

import extras
from bench.rows import MODEL
from core.jobs.models import Job
from core.jobs.services import job_create
from extras.simulation.core import Pool
from extras.simulation.pools import JudgedPool
from extras.simulation.report import Plan, with_step
from extras.simulation.services import JOB_KIND as SIMULATION
from labeling.candidates.models import Candidate
from labeling.judging.models import Judgment
from labeling.queries.models import Query
from releases.making.services import release_claim, release_make
from releases.models import Release
from retrieval.corpus.models import Species


class Page(NamedTuple):
    """An address, and the role of the person who opens it."""

    name: str
    path: str
    role: str


#: By role, one page per line: its name and its address. Pages that rank the corpus (a search with a
#: text, and "more like this") are left out.
_PAGES: Final = {
    "annotator": """
      Dashboard of an annotator          /
      Account                            /account/
      Password                           /account/password/
      Images                             /corpus/
      Images of a species                /corpus/?species={species}
      Images of a data set               /corpus/?dataset=rows
      Newest images                      /corpus/?order=newest
      Image of an annotator              /images/{image}/
      Species                            /corpus/?view=species
      Species, page 3                    /corpus/?view=species&page=3
      Species found                      /corpus/?view=species&name={name}
      Labeling                           /queries/{query}/label/
      Audit                              /queries/{query}/audit/
      Audit of a release                 /queries/{query}/release-audit/
      Next audit of a release            /release-audit/
      Second opinions                    /queries/{submitted}/second-opinions/
      Next second opinions               /second-opinions/
      Further images                     /queries/{submitted}/further-images/
      Next further images                /further-images/
      How to label                       /how-to-label/
      Look-alikes                        /look-alikes/
      Species side by side               /look-alikes/{species}/{other_species}/
      Practice                           /practice/
      Images of runs                     /queries/{query}/requested/
      Next images of runs                /requested/
      More images                        /queries/{submitted}/more-images/
      Next of more images                /more-images/
      Labeling of oneself                /people/{annotator}/labeling/
      Query of an annotator              /queries/{query}/
      Images of an annotator             /queries/{query}/images/
      API: queries of an annotator       /api/queries/
      API: outline of a list             /api/queries/{query}/outline/
      API: candidates                    /api/queries/{query}/candidates/?limit=60
      API: candidates, far down          /api/queries/{query}/candidates/?start_rank=2000&limit=60
      API: candidates at ranks           /api/queries/{query}/candidates/?ranks=1,7,900
      API: facets of a list              /api/queries/{query}/facets/
      API: matching candidates           /api/queries/{query}/matching/?month=5&judged=no&flagged=no
      API: what is new                   /api/queries/{query}/changes/?cursor=0
      API: audit                         /api/queries/{query}/audit/
      API: audit of a release            /api/queries/{query}/release-audit/
      API: second opinions               /api/queries/{submitted}/second-opinions/
      API: further images                /api/queries/{submitted}/further-images/
      API: answered checks               /api/queries/{submitted}/checks/
      API: comments on an image          /api/queries/{query}/comments/?image={image}
      API: comments on a query           /api/queries/{query}/comments/
      API: images of runs                /api/queries/{query}/requested/
      API: more images                   /api/queries/{submitted}/more-images/
      API: reference                     /api/queries/{query}/reference/
      API: preferences                   /api/preferences/labeling/
      API: data sets                     /api/data-sets/
      API: images of a species           /api/images/?species={species}
      API: images of a data set          /api/images/?dataset=rows
      API: image                         /api/images/{image}/
      API: tiles                         /api/images/tiles/?id={image}
      API: saved filters                 /api/filters/
      API: labels of an image            /api/images/{image}/labeling/
      API: flags of an image             /api/images/{image}/flags/
      API: species                       /api/species/
      API: species picker                /api/species/?search={name}
      API: species picker, two letters   /api/species/?search={name:.2}
      API: species picker, a slip        /api/species/?search={slip}
      API: one species                   /api/species/{species}/
      API: groups by name                /api/species/groups/?search={name}
      API: groups of a species           /api/species/groups/?species={species}
    """,
    "reviewer": """
      Dashboard                          /
      Help                               /help/
      Dashboard, page 2                  /?page=2
      Dashboard, filtered and sorted     /?search=number+1&state=open&sort=-streak
      Query                              /queries/{query}/
      Review                             /queries/{query}/review/
      Images of a query                  /queries/{query}/images/?species={species}&listed=yes
      Images that are relevant           /queries/{complete}/images/?label=relevant
      API: images of a query             /api/queries/{query}/images/?person={annotator}
      Completion                         /queries/{query}/complete/
      Boxes of a query                   /queries/{complete}/boxes/
      API: reader of a query             /api/queries/{submitted}/reader/
      Boxes of a query, COCO file        /queries/{complete}/boxes.json
      Where and when                     /queries/{complete}/nature/
      Where and when, as CSV             /queries/{complete}/nature.csv
      Agreement                          /agreement/
      Labeling of a person               /people/{annotator}/labeling/
      Simulations                        /simulations/
      Readers                            /readers/
      API: readers                       /api/readers/
      Evaluation of a model              /releases/{release}/evaluate/
      Image                              /images/{image}/
      API: labels of any image           /api/images/{image}/labeling/
      API: releases of an image          /api/images/{image}/releases/
      Flagged images                     /flags/
      Withdrawn images                   /flags/?state=withdrawn
      Near-duplicates                    /duplicates/
      API: queries                       /api/queries/
      API: query                         /api/queries/{query}/
      API: judgments                     /api/queries/{query}/judgments/
      API: images to review              /api/queries/{query}/review/
      API: boxes                         /api/queries/{complete}/boxes/
      API: history of an image           /api/queries/{query}/history/?image={image}
      API: flagged images                /api/flags/
      API: withdrawn images              /api/flags/?state=withdrawn
    """,
    "researcher": """
      Releases                           /releases/
      Leaderboard                        /leaderboard/
      Species task                       /leaderboard/species/
      Species task, as CSV               /leaderboard/species.csv
      Runs                               /runs/
      API: releases                      /api/releases/
      API: runs                          /api/runs/
      API: submissions left              /api/submissions/
      Release                            /releases/{release}/
      Statistics of a release            /releases/{release}/statistics/
      Leaderboard of a release           /releases/{release}/leaderboard/
      Analysis of a release              /releases/{release}/analysis/
      Correlations of a release          /releases/{release}/correlations/
      Detection on a release             /releases/{release}/detection/
      Bias of a release                  /releases/{release}/bias/
      Submission to a release            /releases/{release}/submit/
      API: release                       /api/releases/{release}/
      API: correlations of a release     /api/releases/{release}/correlations/
      API: runs on a release             /api/releases/{release}/runs/
    """,
    "admin": """
      Dashboard of an admin              /
      Help of an admin                   /help/
      Models                             /models/
      API: models                        /api/models/
      Query, edited                      /queries/{query}/edit/
      Query, deleted                     /queries/{query}/delete/
      How to label, edited               /how-to-label/edit/
      Practice, queries to choose        /practice/
      New query                          /queries/new/
      Import of queries                  /queries/import/
      Import of images                   /import/
      Open drafts                        /queries/open/
      Splits                             /releases/split/
      Benchmarks                         /benchmarks/
      New benchmark                      /benchmarks/new/
      Screening queries                  /benchmarks/screening/
      Benchmark                          /benchmarks/{benchmark}/
      Job                                /jobs/{job}/
      Simulation                         /simulations/{simulation}/
      Simulation, as CSV                 /simulations/{simulation}/figures.csv
      Reader                             /readers/{reader}/
      API: calibration of a reader       /api/readers/{reader}/calibration/
      Takedown                           /take-down/{image}/
      Data sets                          /data-sets/
      Data set                           /data-sets/show/?dataset=rows
      Removal of a data set              /data-sets/remove/?dataset=rows
      API: removal of a data set         /api/data-sets/removal/?dataset=rows
      Metrics                            /metrics
      API: jobs                          /api/jobs/
      API: backups                       /api/backups/
      API: settings in force             /api/settings/
      API: job                           /api/jobs/{job}/
      People                             /people/
      Person                             /people/{person}/
      Person who leaves                  /people/{person}/leave/
      Manage                             /manage/
      Jobs                               /manage/jobs/
      Settings in force                  /manage/settings/
      Log                                /log/
      Log, of one query's judgments      /log/?kind=judgments&query=0
      Log, as CSV                        /log.csv
      Admin                              /admin/
      Admin: images of a data set        /admin/retrieval/image/?dataset=rows
      Admin: image by id                 /admin/retrieval/image/?q={image}
      Admin: images by species           /admin/retrieval/image/?q={name}
      Admin: one image                   /admin/retrieval/image/{image}/change/
      Admin: judgments of a query        /admin/labeling/judgment/?q=0
      Admin: events of a query           /admin/labeling/judgmentevent/?q=0
    """,
}


def pages() -> list[Page]:
    """All pages about the first query, its list's first image and the image's species, and about a
    job and a release, which are created if there is none.
    """
    query = Query.objects.exclude(current_list=None).earliest("query_id")
    image = Candidate.objects.filter(list=query.current_list_id).earliest("rank").image_id
    species = Species.objects.get(images=image)
    genus = species.genus
    # Pages of versions take longer with more releases, so there is one, however often a folder is
    # used.
    release = Release.objects.exclude(made_at=None).first() or release_make(
        release=release_claim(name="pages", created_by=None, options={"rerank_model": ""})
    )
    if not Job.objects.exists():
        job_create(kind="embed", params={"model": MODEL})
    values: dict[str, Any] = {
        "query": query.pk,
        "benchmark": query.benchmark_id,
        "submitted": _submitted().pk,
        "complete": _complete().pk,
        "annotator": _annotator().pk,
        "image": image,
        "species": species.pk,
        "other_species": Species.objects.exclude(pk=species.pk).earliest("pk").pk,
        "name": genus,
        "slip": genus[:2] + genus[3:1:-1] + genus[4:],
        "job": Job.objects.latest("pk").pk,
        "simulation": (Job.objects.filter(kind=SIMULATION).first() or _simulation()).pk,
        "reader": _reader(),
        "release": release.pk,
        "person": get_user_model().objects.earliest("pk").pk,
    }
    listed = [
        Page(name, path.format(**values), role)
        for role, text in _PAGES.items()
        for name, path in re.findall(r"(\S.*?)  +(/.*)", text)
    ]
    return [page for page in listed if _is_installed(page)] + [
        Page(
            f"Admin: {model._meta.label_lower}",
            f"/admin/{model._meta.label_lower.replace('.', '/')}/",
            "admin",
        )
        for model in admin.site._registry
    ]


def _reader() -> int:
    """A reader, made if there is none; 0 without that extra."""
    if "reading" not in settings.EXTRAS:
        return 0
    from extras.reading.models import Reader

    setup = {"entry_point": "none", "max_side": 64}
    return Reader.objects.get_or_create(name="pages", defaults=setup)[0].pk


def _is_installed(page: Page) -> bool:
    """Whether a page exists; Resolver404 if it doesn't although all extras are installed."""
    try:
        resolve(page.path.partition("?")[0])
    except Resolver404:
        if len(settings.EXTRAS) == len(extras.NAMES):
            raise
        return False
    return True


def _simulation() -> Job:
    """A finished simulation of four images that don't exist."""
    halves = np.zeros((4, 1), np.float16)
    pool = Pool(np.arange(4), np.arange(4) % 2 == 0, halves, halves[0])
    figures = JudgedPool(0, "four images", pool, listed=4, left_out=0, exhausted=True).about
    plan = Plan(orders=("frozen",), seeds=1)
    for order, stop in plan.steps:
        figures = with_step(figures, plan.simulation(pool), order, stop)
    params = {"plan": asdict(plan)}
    return Job.objects.create(kind=SIMULATION, state=Job.State.DONE, params=params, result=figures)


def _submitted() -> Query:
    """The annotator's last query that isn't complete, submitted."""
    states = (Query.State.OPEN, Query.State.SUBMITTED)
    queries = Query.objects.filter(judgments__annotator=_annotator(), state__in=states)
    query = queries.order_by("-state", "-query_id")[0]
    Query.objects.filter(pk=query.pk).update(state=Query.State.SUBMITTED)
    return query


def _complete() -> Query:
    """A complete query with judgments, whose images get boxes."""
    queries = Query.objects.filter(state=Query.State.COMPLETE).exclude(judgments=None)
    query = queries.earliest("query_id")
    if "boxes" in settings.EXTRAS:
        from extras.boxes.models import BoxedQuery

        BoxedQuery.objects.get_or_create(query=query, images=BoxedQuery.Images.ALL)
    return query


def _annotator() -> Any:
    """The first query's annotator."""
    first = Judgment.objects.filter(query__query_id=0).select_related("annotator").earliest("pk")
    return first.annotator


def clients() -> dict[str, Client]:
    """A client of a person of each role who is logged in; the annotator is the first query's."""
    users = get_user_model().objects
    users.filter(username="admin").update(is_staff=True, is_superuser=True)
    clients_by_role = {}
    for role in _PAGES:
        clients_by_role[role] = Client(SERVER_NAME="localhost")
        clients_by_role[role].force_login(
            _annotator() if role == "annotator" else users.get(username=role)
        )
    return clients_by_role
