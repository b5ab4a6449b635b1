"""Addresses of the API of the corpus."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from retrieval.embedding.api import EmbeddingJobViewSet
from retrieval.flags.api import (
    ClearFlagsView,
    FlagsView,
    ImageFlagsView,
    ImageFlagView,
    ReopenFlagsView,
    RestoreView,
    WithdrawView,
)
from retrieval.images.api import ImageViewSet
from retrieval.search.api import SearchView
from retrieval.species.api import SpeciesViewSet

router = SimpleRouter(use_regex_path=False)
router.register("images", ImageViewSet, basename="api-image")
router.register("species", SpeciesViewSet, basename="api-species")
router.register("jobs", EmbeddingJobViewSet, basename="api-job")

urlpatterns = [
    path("search/", SearchView.as_view(), name="api-search"),
    path("flags/", FlagsView.as_view(), name="api-flags"),
    path("images/<id:pk>/flags/", ImageFlagsView.as_view(), name="api-image-flags"),
    path("images/<id:pk>/flags/<id:flag>/", ImageFlagView.as_view(), name="api-image-flag"),
    path("images/<id:pk>/withdraw/", WithdrawView.as_view(), name="api-image-withdraw"),
    path("images/<id:pk>/restore/", RestoreView.as_view(), name="api-image-restore"),
    path("images/<id:pk>/clear-flags/", ClearFlagsView.as_view(), name="api-image-clear"),
    path("images/<id:pk>/reopen-flags/", ReopenFlagsView.as_view(), name="api-image-reopen"),
    path("", include(router.urls)),
]
