"""The addresses of this app's part of the API, under /api/."""

from rest_framework.routers import SimpleRouter

from labeling.api.queries import QueryViewSet

router = SimpleRouter()
router.register("queries", QueryViewSet, basename="api-query")

urlpatterns = router.urls
