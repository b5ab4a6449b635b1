"""The addresses of readers."""

from django.urls import path

from extras.reading.api import ReadersView, ReadingsView
from extras.reading.calibration_api import ReaderCalibrationView
from extras.reading.calibration_card import reader_calibrate
from extras.reading.views import reader_page, readers_page

urlpatterns = [
    path("readers/", readers_page, name="readers"),
    path("readers/<id:pk>/", reader_page, name="reader"),
    path("readers/<id:pk>/calibrate/", reader_calibrate, name="reader-calibrate"),
    path("api/readers/", ReadersView.as_view(), name="api-readers"),
    path("api/readers/<id:pk>/readings/", ReadingsView.as_view(), name="api-readings"),
    path(
        "api/readers/<id:pk>/calibration/",
        ReaderCalibrationView.as_view(),
        name="api-reader-calibration",
    ),
]
