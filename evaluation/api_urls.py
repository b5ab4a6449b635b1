"""The addresses of runs in the API, under /api/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from evaluation.reranking.api import RerankEstimateView, RerankResumeView, RerankView
from evaluation.runs.api import AllowanceView, BaselinesView, ReleaseRunsView, RunViewSet

router = SimpleRouter(use_regex_path=False)
router.register("runs", RunViewSet, basename="api-run")

urlpatterns = [
    *router.urls,
    path("releases/<id:pk>/runs/", ReleaseRunsView.as_view(), name="api-release-runs"),
    path("releases/<id:pk>/baselines/", BaselinesView.as_view(), name="api-release-baselines"),
    path("releases/<id:pk>/rerank/", RerankView.as_view(), name="api-rerank"),
    path(
        "releases/<id:pk>/rerank/estimate/",
        RerankEstimateView.as_view(),
        name="api-rerank-estimate",
    ),
    path("runs/<id:pk>/rerank/resume/", RerankResumeView.as_view(), name="api-rerank-resume"),
    path("submissions/", AllowanceView.as_view(), name="api-submissions"),
]
