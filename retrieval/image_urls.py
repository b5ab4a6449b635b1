from django.urls import path

from retrieval.image_views import image

urlpatterns = [
    path("images/<int:pk>/<str:version>.jpg", image, name="image"),
]
