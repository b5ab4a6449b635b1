"""The addresses of re-ranking in the API, under /api/."""

from django.urls import path

from benchmark.reranking.api import RerankEstimateView, RerankResumeView, RerankView

urlpatterns = [
    path("releases/<id:pk>/rerank/", RerankView.as_view(), name="api-rerank"),
    path(
        "releases/<id:pk>/rerank/estimate/",
        RerankEstimateView.as_view(),
        name="api-rerank-estimate",
    ),
    path("runs/<id:pk>/rerank/resume/", RerankResumeView.as_view(), name="api-rerank-resume"),
]
