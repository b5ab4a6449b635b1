"""The addresses of this app's pages."""

from django.urls import path

from labeling import views
from labeling.gallery import views as gallery
from labeling.guidance import views as guidance
from labeling.judging.blind import BLIND_KINDS
from labeling.lifecycle import benchmark_views
from labeling.lifecycle import views as query_views

urlpatterns = [
    path("", views.dashboard, name="dashboard"),
    path("help/", views.help_page, name="help"),
    path("how-to-label/", guidance.how_to_label, name="how-to-label"),
    path("how-to-label/edit/", guidance.how_to_label_edit, name="how-to-label-edit"),
    path("practice/", guidance.practice, name="practice"),
    path("practice/queries/", guidance.practice_query, name="practice-query"),
    path("queries/<id:pk>/label/", views.label, name="query-label"),
    path("queries/<id:pk>/audit/", views.audit, name="query-audit"),
    path("agreement/", views.agreement, name="agreement"),
    path("people/<id:pk>/labeling/", views.person_labeling, name="person-labeling"),
    path("queries/<id:pk>/review/", views.review, name="query-review"),
    path("benchmarks/", benchmark_views.benchmarks, name="benchmarks"),
    path("benchmarks/screening/", benchmark_views.screening, name="screening"),
    path("benchmarks/new/", benchmark_views.benchmark_new, name="benchmark-new"),
    path("benchmarks/<id:pk>/", benchmark_views.benchmark_edit, name="benchmark-edit"),
    path("benchmarks/<id:pk>/delete/", benchmark_views.benchmark_delete, name="benchmark-delete"),
    path("queries/new/", query_views.query_edit, name="query-new"),
    path("queries/import/", query_views.query_import, name="query-import"),
    path("queries/open/", query_views.queries_open_page, name="query-open-many"),
    path("queries/from-search/", query_views.query_from_search, name="query-from-search"),
    path("queries/<id:pk>/", query_views.query_detail, name="query-detail"),
    path("queries/<id:pk>/images/", gallery.images, name="query-images"),
    path("queries/<id:pk>/edit/", query_views.query_edit, name="query-edit"),
    path("queries/<id:pk>/delete/", query_views.query_delete, name="query-delete"),
    path("queries/<id:pk>/finds/", query_views.query_finds, name="query-finds"),
    path("queries/<id:pk>/transition/", query_views.query_transition, name="query-transition"),
    path("queries/<id:pk>/complete/", query_views.query_complete, name="query-complete"),
    path("queries/<id:pk>/team/", query_views.query_team, name="query-team"),
    path("queries/<id:pk>/refresh/", query_views.query_refresh, name="query-refresh"),
]
for kind in BLIND_KINDS:
    page, of_query = kind.name, f"queries/<id:pk>/{kind.name}/"
    urlpatterns += [
        path(f"{page}/", views.blind_next, {"kind": kind}, name=page),
        path(of_query, views.blind, {"kind": kind}, name=f"query-{page}"),
    ]
