"""The pages on which runs are re-ranked."""

from django.urls import path

from benchmark.reranking import views as rerank_views

urlpatterns = [
    path("releases/<id:pk>/rerank/", rerank_views.rerank_run, name="rerank-run"),
    path("runs/<id:pk>/rerank/resume/", rerank_views.rerank_resume_run, name="rerank-resume"),
    path("runs/<id:pk>/rerank/stop/", rerank_views.rerank_stop_run, name="rerank-stop"),
]
