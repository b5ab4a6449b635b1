"""Addresses of the pages of the corpus."""

from django.urls import path

from retrieval.browsing.views import corpus, search
from retrieval.custom_fields import views as fields
from retrieval.datasets.views import data_set, data_sets
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
    path("data-sets/", data_sets, name="data-sets"),
    path("data-sets/show/", data_set, name="data-set"),
    path("data-sets/remove/", dataset_remove, name="dataset-remove"),
    path("custom-fields/", fields.custom_fields, name="custom-fields"),
    path("custom-fields/<id:pk>/", fields.custom_field, name="custom-field"),
    path("custom-fields/<id:pk>/delete/", fields.custom_field_remove, name="custom-field-delete"),
    path("import/", uploads.upload, name="upload"),
    path("import/template.csv", uploads.upload_template, name="upload-template"),
    path("import/<uuid:upload>/", uploads.upload_preview, name="upload-preview"),
    path("import/<uuid:upload>/unpack/", uploads.upload_unpack, name="upload-unpack"),
    path("import/<uuid:upload>/images/<int:number>/", uploads.upload_image, name="upload-image"),
    path("import/<uuid:upload>/table/", uploads.upload_table, name="upload-table"),
    path("import/<uuid:upload>/files/", uploads.upload_files, name="upload-files"),
    path("images/<id:pk>/", image_page, name="image-page"),
    path("images/<id:pk>/<str:version>.jpg", image, name="image"),
]
