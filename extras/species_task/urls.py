"""The addresses of the species task."""

from django.urls import path

from extras.species_task.views import species_board, species_file, species_run, species_run_file

urlpatterns = [
    path("leaderboard/species/", species_board, name="species-board"),
    path("leaderboard/species.csv", species_file, name="species-file"),
    path("leaderboard/species/<int:pk>/", species_run, name="species-run"),
    path("leaderboard/species/<int:pk>.csv", species_run_file, name="species-run-file"),
    path("leaderboard/species/<int:pk>.json", species_run_file, name="species-run-json"),
]
