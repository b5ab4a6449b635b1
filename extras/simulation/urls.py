"""The addresses of simulations."""

from django.urls import path

from extras.simulation import views

urlpatterns = [
    path("simulations/", views.simulations, name="simulations"),
    path("simulations/<id:pk>/", views.simulation, name="simulation"),
    path("simulations/<id:pk>/figures.csv", views.simulation_figures, name="simulation-figures"),
]
