"""Every address of the application."""

import sys
from importlib import import_module

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView

from annotator.api import TokenView
from annotator.health import healthz


def app_urls(prefix: str, module: str) -> list[URLPattern | URLResolver]:
    """The addresses of one app, while the apps are being written: without those not importable."""
    try:
        import_module(module)
    except ImportError as error:
        print(f"left out {module}: {error}", file=sys.stderr)
        return []
    return [path(prefix, include(module))]


urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
    path("api/token/", TokenView.as_view(), name="api-token"),
    path("api/schema/", SpectacularAPIView.as_view(), name="api-schema"),
    *app_urls("api/", "retrieval.api_urls"),
    *app_urls("api/", "labeling.api_urls"),
    *app_urls("api/", "benchmark.api_urls"),
    *app_urls("", "retrieval.urls"),
    *app_urls("", "labeling.urls"),
    *app_urls("", "benchmark.urls"),
]

handler400 = "annotator.problems.bad_request"
handler403 = "annotator.problems.permission_denied"
handler404 = "annotator.problems.page_not_found"
handler500 = "annotator.problems.server_error"
