from django.urls import include, path

from core.jobs.views import job
from retrieval import views
from retrieval.flags.views import flags
from retrieval.search.views import search

urlpatterns = [
    path("search/", search, name="search"),
    path("corpus/", views.corpus, name="corpus"),
    path("flags/", flags, name="flags"),
    path("jobs/<id:pk>/", job, name="job"),
    path("", include("retrieval.images.urls")),
]
