"""The addresses of this app's part of the API, under /api/."""

from rest_framework.routers import SimpleRouter

from benchmark.api import ReleaseViewSet

router = SimpleRouter()
router.register("releases", ReleaseViewSet, basename="api-release")

urlpatterns = router.urls
