from django.urls import include, path

from retrieval import views
from retrieval.search_views import search

urlpatterns = [
    path("search/", search, name="search"),
    path("corpus/", views.corpus, name="corpus"),
    path("flags/", views.flags, name="flags"),
    path("jobs/<id:pk>/", views.job, name="job"),
    path("", include("retrieval.image_urls")),
]
