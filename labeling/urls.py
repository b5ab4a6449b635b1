from django.urls import path

from labeling import opening_views, query_views, views

urlpatterns = [
    path("", views.dashboard, name="dashboard"),
    path("queries/<int:pk>/label/", views.label, name="query-label"),
    path("queries/<int:pk>/review/", views.review, name="query-review"),
    path("queries/new/", query_views.query_new, name="query-new"),
    path("queries/import/", query_views.query_import, name="query-import"),
    path("queries/open/", opening_views.queries_open_page, name="query-open-many"),
    path("queries/from-search/", query_views.query_from_search, name="query-from-search"),
    path("queries/<int:pk>/", query_views.query_detail, name="query-detail"),
    path("queries/<int:pk>/edit/", query_views.query_edit, name="query-edit"),
    path("queries/<int:pk>/delete/", query_views.query_delete, name="query-delete"),
    path("queries/<int:pk>/transition/", query_views.query_transition, name="query-transition"),
    path("queries/<int:pk>/complete/", query_views.query_complete, name="query-complete"),
    path("queries/<int:pk>/refresh/", query_views.query_refresh, name="query-refresh"),
]
