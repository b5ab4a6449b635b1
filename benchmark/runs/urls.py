"""The pages on which runs are submitted, described, published and deleted."""

from django.urls import path

from benchmark.runs import views as run_views

urlpatterns = [
    path("releases/<id:pk>/submit/", run_views.submit_run, name="submit-run"),
    path("runs/", run_views.my_runs, name="my-runs"),
    path("runs/<id:pk>/card/", run_views.run_card, name="run-card"),
    path("runs/<id:pk>/publish/", run_views.publish, name="run-publish"),
    path("runs/<id:pk>/unpublish/", run_views.unpublish, name="run-unpublish"),
    path("runs/<id:pk>/delete/", run_views.delete, name="run-delete"),
    path("runs/<id:pk>/score/", run_views.score, name="run-score"),
]
