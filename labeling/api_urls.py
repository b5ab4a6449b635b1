"""The addresses of this app's part of the API, under /api/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from labeling.api import QueryViewSet
from labeling.images.api import ImageInLabelingView
from labeling.judging.blind import BLIND_KINDS
from labeling.studio.blind import BlindDrawsView, BlindQueueView
from labeling.studio.preferences import LabelingPreferencesView

router = SimpleRouter(use_regex_path=False)
router.register("queries", QueryViewSet, basename="api-query")

urlpatterns = [
    *router.urls,
    path("images/<id:pk>/labeling/", ImageInLabelingView.as_view(), name="api-image-labeling"),
    path(
        "preferences/labeling/",
        LabelingPreferencesView.as_view(),
        name="api-labeling-preferences",
    ),
]
for kind in BLIND_KINDS:
    address, name = f"queries/<id:pk>/{kind.name}/", f"api-query-{kind.name}"
    urlpatterns += [
        path(address, BlindQueueView.as_view(), {"kind": kind}, name=name),
        path(f"{address}draws/", BlindDrawsView.as_view(), {"kind": kind}, name=f"{name}-draws"),
    ]
