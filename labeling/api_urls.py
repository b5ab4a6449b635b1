"""The addresses of this app's part of the API, under /api/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from labeling.api import QueryViewSet
from labeling.studio.preferences import LabelingPreferencesView

router = SimpleRouter(use_regex_path=False)
router.register("queries", QueryViewSet, basename="api-query")

urlpatterns = [
    *router.urls,
    path(
        "preferences/labeling/",
        LabelingPreferencesView.as_view(),
        name="api-labeling-preferences",
    ),
]
