"""The addresses of correlations."""

from django.urls import path

from extras.correlations.api import CorrelateView, ReleaseCorrelationsView
from extras.correlations.views import correlations_page

urlpatterns = [
    path("releases/<id:pk>/correlations/", correlations_page, name="correlations"),
    path(
        "api/releases/<id:pk>/correlations/",
        ReleaseCorrelationsView.as_view(),
        name="api-correlations",
    ),
    path("api/correlate/", CorrelateView.as_view(), name="api-correlate"),
]
