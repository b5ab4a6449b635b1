"""Addresses of the pages of the corpus."""

from django.urls import path

from retrieval.browsing.views import corpus, search
from retrieval.embedding.model_views import models
from retrieval.embedding.views import job
from retrieval.flags.views import flags
from retrieval.images.views import image, image_page
from retrieval.removal.views import dataset_remove
from retrieval.takedown.views import take_down
from retrieval.uploads import views as uploads

urlpatterns = [
    path("search/", search, name="search"),
    path("corpus/", corpus, name="corpus"),
    path("models/", models, name="models"),
    path("flags/", flags, name="flags"),
    path("jobs/<id:pk>/", job, name="job"),
    path("take-down/<id:pk>/", take_down, name="take-down"),
    path("data-sets/remove/", dataset_remove, name="dataset-remove"),
    path("import/", uploads.upload, name="upload"),
    path("import/<uuid:upload>/", uploads.upload_preview, name="upload-preview"),
    path("import/<uuid:upload>/unpack/", uploads.upload_unpack, name="upload-unpack"),
    path("import/<uuid:upload>/images/<int:number>/", uploads.upload_image, name="upload-image"),
    path("import/<uuid:upload>/files/", uploads.upload_piece, name="upload-piece"),
    path("images/<id:pk>/", image_page, name="image-page"),
    path("images/<id:pk>/<str:version>.jpg", image, name="image"),
]
