from django.urls import path

from retrieval.image_views import image

urlpatterns = [
    path("images/<id:pk>/<str:version>.jpg", image, name="image"),
]
