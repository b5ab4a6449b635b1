from django.contrib.auth.decorators import login_required
from django.urls import path
from django.views.generic import RedirectView

from benchmark import split_views, views

urlpatterns = [
    path("releases/", views.releases_page, name="releases"),
    path(
        "leaderboard/",
        login_required(RedirectView.as_view(pattern_name="releases")),
        name="leaderboard-latest",
    ),
    path("releases/split/", split_views.split_queries, name="split-queries"),
    path("releases/<int:pk>/files/<str:name>", views.release_file, name="release-file"),
]
