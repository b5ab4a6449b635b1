"""The addresses of near-duplicates."""

from django.urls import path

from extras.duplicates.api import DuplicatesView
from extras.duplicates.views import duplicates

urlpatterns = [
    path("duplicates/", duplicates, name="duplicates"),
    path("api/duplicates/", DuplicatesView.as_view(), name="api-duplicates"),
]
