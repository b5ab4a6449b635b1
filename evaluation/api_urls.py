"""The addresses of runs in the API, under /api/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from evaluation.leaderboard.api import CloseBoardView, LeaderboardView
from evaluation.reranking.api import RerankEstimateView, RerankResumeView, RerankView
from evaluation.runs.api import (
    AllowanceView,
    BaselinesView,
    EvaluationView,
    FusionView,
    ReleaseRunsView,
    RunViewSet,
)

router = SimpleRouter(use_regex_path=False)
router.register("runs", RunViewSet, basename="api-run")

urlpatterns = [
    *router.urls,
    path("releases/<id:pk>/runs/", ReleaseRunsView.as_view(), name="api-release-runs"),
    path("releases/<id:pk>/baselines/", BaselinesView.as_view(), name="api-release-baselines"),
    path("releases/<id:pk>/fuse/", FusionView.as_view(), name="api-release-fuse"),
    path("releases/<id:pk>/evaluate/", EvaluationView.as_view(), name="api-release-evaluate"),
    path("releases/<id:pk>/close-board/", CloseBoardView.as_view(), name="api-close-board"),
    path(
        "releases/<id:pk>/leaderboard.<str:extension>",
        LeaderboardView.as_view(),
        name="api-leaderboard",
    ),
    path("releases/<id:pk>/rerank/", RerankView.as_view(), name="api-rerank"),
    path(
        "releases/<id:pk>/rerank/estimate/",
        RerankEstimateView.as_view(),
        name="api-rerank-estimate",
    ),
    path("runs/<id:pk>/rerank/resume/", RerankResumeView.as_view(), name="api-rerank-resume"),
    path("submissions/", AllowanceView.as_view(), name="api-submissions"),
]
