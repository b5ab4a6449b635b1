"""Addresses of the API of the corpus."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from retrieval.browsing.api import (
    CountsView,
    MatchesCsvView,
    MatchesView,
    SavedFiltersView,
    SavedFilterView,
    TilesView,
)
from retrieval.custom_fields.api import CustomFieldViewSet
from retrieval.datasets.api import DatasetFiguresView, DatasetFoundView, DatasetMarkView
from retrieval.embedding.api import EmbeddingJobViewSet, ModelViewSet
from retrieval.images.api import ImageViewSet
from retrieval.removal.api import DatasetRemovalView, DatasetsView
from retrieval.search.api import SearchView
from retrieval.species.api import SpeciesViewSet

router = SimpleRouter(use_regex_path=False)
router.register("images", ImageViewSet, basename="api-image")
router.register("species", SpeciesViewSet, basename="api-species")
router.register("custom-fields", CustomFieldViewSet, basename="api-custom-field")
router.register("jobs", EmbeddingJobViewSet, basename="api-job")

urlpatterns = [
    path("search/", SearchView.as_view(), name="api-search"),
    path("images/matches/", MatchesView.as_view(), name="api-image-matches"),
    path("images/matches.csv", MatchesCsvView.as_view(), name="api-image-matches-csv"),
    path("images/tiles/", TilesView.as_view(), name="api-image-tiles"),
    path("images/counts/", CountsView.as_view(), name="api-image-counts"),
    path("filters/", SavedFiltersView.as_view(), name="api-filters"),
    path("filters/<id:pk>/", SavedFilterView.as_view(), name="api-filter"),
    path("data-sets/", DatasetsView.as_view(), name="api-datasets"),
    path("data-sets/figures/", DatasetFiguresView.as_view(), name="api-dataset-figures"),
    path("data-sets/found/", DatasetFoundView.as_view(), name="api-dataset-found"),
    path("data-sets/mark/", DatasetMarkView.as_view(), name="api-dataset-mark"),
    path("data-sets/removal/", DatasetRemovalView.as_view(), name="api-dataset-removal"),
    path("models/", ModelViewSet.as_view({"get": "overview"}), name="api-models"),
    path("models/use/", ModelViewSet.as_view({"post": "use"}), name="api-model-use"),
    path("models/measure/", ModelViewSet.as_view({"post": "measure"}), name="api-model-measure"),
    path("flags/", ImageViewSet.as_view({"get": "flagged"}), name="api-flags"),
    path("", include(router.urls)),
]
