"""Addresses of the pages of look-alikes."""

from django.urls import path

from extras.lookalikes.views import compare_species, lookalikes

urlpatterns = [
    path("look-alikes/", lookalikes, name="lookalikes"),
    path("look-alikes/<id:pk>/<id:other>/", compare_species, name="compare-species"),
]
