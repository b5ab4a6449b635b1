"""The addresses of releases in the API, under /api/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from releases.api import FileRenderer, ReleasesOfDatasetView, ReleasesOfImageView, ReleaseViewSet
from releases.splits.api import SplitView

router = SimpleRouter(use_regex_path=False)
router.register("releases", ReleaseViewSet, basename="api-release")

urlpatterns = [
    *router.urls,
    path("images/<id:pk>/releases/", ReleasesOfImageView.as_view(), name="api-image-releases"),
    path("data-sets/releases/", ReleasesOfDatasetView.as_view(), name="api-dataset-releases"),
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
]
