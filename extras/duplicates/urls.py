"""The address of near-duplicates."""

from django.urls import path

from extras.duplicates.views import duplicates

urlpatterns = [path("duplicates/", duplicates, name="duplicates")]
