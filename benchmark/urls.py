"""The addresses of the benchmark app."""

from django.urls import include, path

from benchmark.releases import split_views, views
from benchmark.releases.statistics import views as statistics_views

urlpatterns = [
    path("releases/", views.releases_page, name="releases"),
    path("", include("benchmark.leaderboard.urls")),
    path("", include("benchmark.runs.urls")),
    path("", include("benchmark.reranking.urls")),
    path("releases/split/", split_views.split_queries, name="split-queries"),
    path("releases/<id:pk>/", views.release_page, name="release"),
    path("releases/<id:pk>/files/<path:name>", views.release_file, name="release-file"),
    path("releases/<id:pk>/statistics/", statistics_views.statistics, name="release-statistics"),
    path("releases/<id:pk>/archive", views.release_archive, name="release-archive"),
    path("releases/<id:pk>/retry/", views.release_retry, name="release-retry"),
]
