from django.urls import path

from benchmark import views

urlpatterns = [
    path("releases/", views.releases_page, name="releases"),
    path("releases/<int:pk>/files/<str:name>", views.release_file, name="release-file"),
]
