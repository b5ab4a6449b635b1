from django.urls import include, path
from rest_framework.routers import SimpleRouter

from retrieval.api.species import SpeciesViewSet
from retrieval.api.views import ImageViewSet, JobViewSet, SearchView

router = SimpleRouter()
router.register("images", ImageViewSet, basename="api-image")
router.register("species", SpeciesViewSet, basename="api-species")
router.register("jobs", JobViewSet, basename="api-job")

urlpatterns = [
    path("search/", SearchView.as_view(), name="api-search"),
    path("", include(router.urls)),
]
