"""The addresses of the benchmark app."""

from django.urls import path

from benchmark.leaderboard import bias_views, compare_views, correlation_views, run_views
from benchmark.leaderboard import views as leaderboard
from benchmark.nature import views as nature
from benchmark.releases import views as releases
from benchmark.releases.splits import views as splits
from benchmark.releases.statistics import views as statistics
from benchmark.reranking import views as reranking
from benchmark.runs import views as runs
from benchmark.simulation import views as simulation
from benchmark.species import views as species

urlpatterns = [
    path("releases/", releases.releases_page, name="releases"),
    path("releases/split/", splits.split_queries, name="split-queries"),
    path("releases/<id:pk>/", releases.release_page, name="release"),
    path("releases/<id:pk>/files/<path:name>", releases.release_file, name="release-file"),
    path("releases/<id:pk>/statistics/", statistics.statistics, name="release-statistics"),
    path("releases/<id:pk>/archive", releases.release_archive, name="release-archive"),
    path("releases/<id:pk>/retry/", releases.release_retry, name="release-retry"),
    path("leaderboard/species/", species.species_board, name="species-board"),
    path("leaderboard/species.csv", species.species_file, name="species-file"),
    path("leaderboard/", leaderboard.leaderboard_latest, name="leaderboard-latest"),
    path("releases/<id:pk>/leaderboard/", leaderboard.leaderboard_page, name="leaderboard"),
    path(
        "releases/<id:pk>/leaderboard.<str:extension>",
        leaderboard.leaderboard_export,
        name="leaderboard-export",
    ),
    path(
        "releases/<id:pk>/correlations/", correlation_views.correlations_page, name="correlations"
    ),
    path("releases/<id:pk>/bias/", bias_views.bias_page, name="bias"),
    path("releases/<id:pk>/bias.<str:extension>", bias_views.bias_file, name="bias-file"),
    path("releases/<id:pk>/submit/", runs.submit_run, name="submit-run"),
    path("releases/<id:pk>/fuse/", runs.fuse_runs, name="fuse-runs"),
    path("releases/<id:pk>/evaluate/", runs.evaluate_model, name="evaluate-model"),
    path("releases/<id:pk>/rerank/", reranking.rerank_run, name="rerank-run"),
    path("queries/<id:pk>/nature/", nature.nature, name="query-nature"),
    path("queries/<id:pk>/nature.csv", nature.nature_file, name="query-nature-file"),
    path("simulations/", simulation.simulations, name="simulations"),
    path("simulations/<id:pk>/", simulation.simulation, name="simulation"),
    path(
        "simulations/<id:pk>/figures.csv", simulation.simulation_figures, name="simulation-figures"
    ),
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
