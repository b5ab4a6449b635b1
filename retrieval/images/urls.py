from django.urls import path

from retrieval.images.views import image

urlpatterns = [
    path("images/<id:pk>/<str:version>.jpg", image, name="image"),
]
