"""The addresses of the leaderboard."""

from django.urls import path

from benchmark.leaderboard import compare_views, correlation_views
from benchmark.leaderboard import run_views as run_page_views
from benchmark.leaderboard import views as leaderboard_views

urlpatterns = [
    path("leaderboard/", leaderboard_views.leaderboard_latest, name="leaderboard-latest"),
    path("releases/<id:pk>/leaderboard/", leaderboard_views.leaderboard_page, name="leaderboard"),
    path(
        "releases/<id:pk>/leaderboard.<str:extension>",
        leaderboard_views.leaderboard_export,
        name="leaderboard-export",
    ),
    path(
        "releases/<id:pk>/correlations/", correlation_views.correlations_page, name="correlations"
    ),
    path("runs/compare/", compare_views.compare_page, name="compare-runs"),
    path("runs/<id:pk>/", run_page_views.run_page, name="run"),
    path("runs/<id:pk>/queries/<id:query_id>/", run_page_views.run_query_page, name="run-query"),
]
