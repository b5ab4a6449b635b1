"""The addresses of a query's nature."""

from django.urls import path

from extras.nature.views import nature, nature_file

urlpatterns = [
    path("queries/<id:pk>/nature/", nature, name="query-nature"),
    path("queries/<id:pk>/nature.csv", nature_file, name="query-nature-file"),
]
