"""The address of a release's correlations."""

from django.urls import path

from extras.correlations.views import correlations_page

urlpatterns = [path("releases/<id:pk>/correlations/", correlations_page, name="correlations")]
