"""The addresses of re-ranking in the API, under /api/."""

from django.urls import path

from benchmark.reranking.api import RerankEstimateView, RerankResumeView, RerankView

urlpatterns = [
    path("releases/<int:pk>/rerank/", RerankView.as_view(), name="api-rerank"),
    path(
        "releases/<int:pk>/rerank/estimate/",
        RerankEstimateView.as_view(),
        name="api-rerank-estimate",
    ),
    path("runs/<int:pk>/rerank/resume/", RerankResumeView.as_view(), name="api-rerank-resume"),
]
