"""The addresses of this app's part of the API, under /api/."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from benchmark.api import ReleaseViewSet
from benchmark.split_api import SplitView

router = SimpleRouter(use_regex_path=False)
router.register("releases", ReleaseViewSet, basename="api-release")

urlpatterns = [
    *router.urls,
    path("", include("benchmark.runs.api_urls")),
    path("", include("benchmark.reranking.api_urls")),
    path("splits/", SplitView.as_view(), name="api-splits"),
    path(
        "releases/<int:pk>/files/<path:name>",
        ReleaseViewSet.as_view({"get": "file"}, detail=True),
        name="api-release-file",
    ),
    path(
        "releases/<int:pk>/archive",
        ReleaseViewSet.as_view({"get": "archive"}, detail=True),
        name="api-release-archive",
    ),
]
