"""The addresses of readers, and of queries' use of them."""

from django.urls import path

from extras.reading.api import (
    QueryReaderView,
    ReaderCalibrationView,
    ReadersView,
    ReadingsView,
    SpendView,
)
from extras.reading.calibration_card import reader_calibrate
from extras.reading.views import query_reader, query_reader_queue, reader_page, readers_page

urlpatterns = [
    path("readers/", readers_page, name="readers"),
    path("readers/<id:pk>/", reader_page, name="reader"),
    path("readers/<id:pk>/calibrate/", reader_calibrate, name="reader-calibrate"),
    path("queries/<id:pk>/reader/", query_reader, name="query-reader"),
    path("queries/<id:pk>/reader/queue/", query_reader_queue, name="query-reader-queue"),
    path("api/readers/", ReadersView.as_view(), name="api-readers"),
    path("api/readers/judgments/", SpendView.as_view(), name="api-readers-judgments"),
    path("api/readers/<id:pk>/readings/", ReadingsView.as_view(), name="api-readings"),
    path(
        "api/readers/<id:pk>/calibration/",
        ReaderCalibrationView.as_view(),
        name="api-reader-calibration",
    ),
    path("api/queries/<id:pk>/reader/", QueryReaderView.as_view(), name="api-query-reader"),
]
