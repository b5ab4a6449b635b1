"""The addresses of this app's part of the API, under /api/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from benchmark.releases.api import FileRenderer, ReleaseViewSet
from benchmark.releases.splits.api import SplitView
from benchmark.reranking.api import RerankEstimateView, RerankResumeView, RerankView
from benchmark.runs.api import AllowanceView, BaselinesView, ReleaseRunsView, RunViewSet

router = SimpleRouter(use_regex_path=False)
router.register("releases", ReleaseViewSet, basename="api-release")
router.register("runs", RunViewSet, basename="api-run")

urlpatterns = [
    *router.urls,
    path("splits/", SplitView.as_view(), name="api-splits"),
    path(
        "releases/<id:pk>/files/<path:name>",
        ReleaseViewSet.as_view({"get": "file"}, detail=True, renderer_classes=[FileRenderer]),
        name="api-release-file",
    ),
    path(
        "releases/<id:pk>/archive",
        ReleaseViewSet.as_view({"get": "archive"}, detail=True, renderer_classes=[FileRenderer]),
        name="api-release-archive",
    ),
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
