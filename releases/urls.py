"""The addresses of the pages of releases."""

from django.urls import path

from releases import views
from releases.splits import views as splits
from releases.statistics import views as statistics

urlpatterns = [
    path("releases/", views.releases_page, name="releases"),
    path("releases/split/", splits.split_queries, name="split-queries"),
    path("releases/<id:pk>/", views.release_page, name="release"),
    path("releases/<id:pk>/files/<path:name>", views.release_file, name="release-file"),
    path("releases/<id:pk>/statistics/", statistics.statistics, name="release-statistics"),
    path("releases/<id:pk>/archive", views.release_archive, name="release-archive"),
    path("releases/<id:pk>/retry/", views.release_retry, name="release-retry"),
]
