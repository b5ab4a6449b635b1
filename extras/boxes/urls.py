"""The addresses of boxes."""

from django.urls import path

from extras.boxes.api import QueryBoxesView
from extras.boxes.views import (
    detection_page,
    detection_run,
    query_boxes,
    query_boxes_ask,
    query_boxes_file,
    query_boxes_import,
)

urlpatterns = [
    path("queries/<id:pk>/boxes/", query_boxes, name="query-boxes"),
    path("queries/<id:pk>/boxes.json", query_boxes_file, name="query-boxes-file"),
    path("queries/<id:pk>/boxes/ask/", query_boxes_ask, name="query-boxes-ask"),
    path("queries/<id:pk>/boxes/import/", query_boxes_import, name="query-boxes-import"),
    path("api/queries/<id:pk>/boxes/", QueryBoxesView.as_view(), name="api-query-boxes"),
    path("releases/<id:pk>/detection/", detection_page, name="detection"),
    path("releases/<id:pk>/detection/<id:run_id>/", detection_run, name="detection-run"),
]
