"""The addresses of the pages of runs and the leaderboard."""

from django.urls import path

from evaluation.leaderboard import bias_views, compare_views, run_views
from evaluation.leaderboard import views as leaderboard
from evaluation.reranking import views as reranking
from evaluation.runs import views as runs

urlpatterns = [
    path("leaderboard/", leaderboard.leaderboard_latest, name="leaderboard-latest"),
    path("releases/<id:pk>/leaderboard/", leaderboard.leaderboard_page, name="leaderboard"),
    path("releases/<id:pk>/analysis/", leaderboard.analysis_page, name="leaderboard-analysis"),
    path("releases/<id:pk>/close-board/", leaderboard.close_board, name="close-board"),
    path(
        "releases/<id:pk>/leaderboard.<str:extension>",
        leaderboard.leaderboard_export,
        name="leaderboard-export",
    ),
    path("releases/<id:pk>/bias/", bias_views.bias_page, name="bias"),
    path("releases/<id:pk>/bias.<str:extension>", bias_views.bias_file, name="bias-file"),
    path("releases/<id:pk>/submit/", runs.submit_run, name="submit-run"),
    path("releases/<id:pk>/fuse/", runs.fuse_runs, name="fuse-runs"),
    path("releases/<id:pk>/evaluate/", runs.evaluate_model, name="evaluate-model"),
    path("releases/<id:pk>/rerank/", reranking.rerank_run, name="rerank-run"),
    path("runs/", runs.my_runs, name="my-runs"),
    path("runs/compare/", compare_views.compare_page, name="compare-runs"),
    path("runs/<id:pk>/", run_views.run_page, name="run"),
    path("runs/<id:pk>/queries/<id:query_id>/", run_views.run_query_page, name="run-query"),
    path("runs/<id:pk>/card/", runs.run_card, name="run-card"),
    path("runs/<id:pk>/publish/", runs.publish, name="run-publish"),
    path("runs/<id:pk>/unpublish/", runs.unpublish, name="run-unpublish"),
    path("runs/<id:pk>/delete/", runs.delete, name="run-delete"),
    path("runs/<id:pk>/score/", runs.score, name="run-score"),
    path("runs/<id:pk>/judge/", runs.judge, name="run-judge"),
    path("runs/<id:pk>/rerank/resume/", reranking.rerank_resume_run, name="rerank-resume"),
    path("runs/<id:pk>/rerank/stop/", reranking.rerank_stop_run, name="rerank-stop"),
]
