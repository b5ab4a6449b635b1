"""The addresses of the species task."""

from django.urls import path

from extras.species_task.views import species_board, species_file

urlpatterns = [
    path("leaderboard/species/", species_board, name="species-board"),
    path("leaderboard/species.csv", species_file, name="species-file"),
]
