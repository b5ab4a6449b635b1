"""Which benchmarks there are, for whom, and by which name."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Exists, OuterRef, Q, QuerySet

from core.access import Role, role_of
from labeling.queries.models import Benchmark, default_benchmark


def benchmarks_of(user: Any) -> QuerySet[Benchmark]:
    """The benchmarks that the user takes part in: an annotator in those without people of their own
    and where they are among these, everybody else in all.
    """
    if role_of(user) != Role.ANNOTATOR:
        return Benchmark.objects.all()
    people = Benchmark.people.through.objects.filter(benchmark=OuterRef("pk"))
    return Benchmark.objects.filter(Q(~Exists(people)) | Exists(people.filter(user=user)))


def benchmarks_shown(user: Any) -> list[Benchmark]:
    """The benchmarks that pages tell the user apart, by name: none where there is only one."""
    benchmarks = list(benchmarks_of(user).order_by("name"))
    return benchmarks if len(benchmarks) > 1 else []


def benchmark_named(name: str) -> Benchmark:
    """The benchmark of that name, without one the only one there is that isn't for screening.
    Raises ValidationError.
    """
    known = list(Benchmark.objects.order_by("name"))
    labeled = [benchmark for benchmark in known if not benchmark.screening]
    if not name and len(labeled) < 2:
        return labeled[0] if labeled else Benchmark.objects.get(pk=default_benchmark())
    for benchmark in known:
        if benchmark.name == name:
            return benchmark
    names = ", ".join(repr(benchmark.name) for benchmark in known)
    problem = f"There is no benchmark {name!r}" if name else "Name a benchmark"
    raise ValidationError({"benchmark": f"{problem}: there are {names}."})
