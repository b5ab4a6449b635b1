"""What is simulated, step by step, and its figures as data, as rows and in words."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from statistics import fmean, geometric_mean
from typing import Any, Final

from core.csv_rows import spreadsheet_text
from extras.simulation.core import (
    ORDERS,
    READ_ORDERS,
    RECALLS,
    Pool,
    Share,
    Simulation,
    Stop,
    parse_stop,
)
from extras.simulation.readers import parse_reader

Figures = dict[str, Any]
"""Of one query, for JSON: what was simulated, `orders` as OrderFigures, `stops` as StopFigures and,
where people miss images and a reader reads along, `doubts` as DoubtFigures."""

#: What names a row of figures, before the figures themselves.
NAMES: Final = ("query_id", "query_text", "images", "relevant", "closed_world", "order", "stop")
ORDER_COLUMNS: Final = (*(f"labels_to_{recall}" for recall in RECALLS), "wss_95", "erf_10", "atd")
MEANS: Final = ("labels", "labels_p5", "recall", "recall_p5", "target", "saved", "exhausted")
SHARES: Final = ("below_target", "coverage", "false_certificates")
DOUBT_COLUMNS: Final = ("second_opinions", "errors_found", "errors_at_random")
ORDER_HEAD: Final = (
    "order",
    "labels to 80 %",
    "95 %",
    "100 %",
    "× frozen",
    "WSS@95",
    "ERF@10",
    "ATD",
)
STOP_HEAD: Final = (
    *("order", "stop", "runs", "labels", "saved", "recall", "5th pct.", "below target"),
    *("coverage", "false certificates"),
)
DOUBT_HEAD: Final = ("order", "doubted labels", "errors in 100 of them", "in 100 at random")


@dataclass(frozen=True, slots=True)
class Plan:
    """Which orders and stops are simulated, and how often."""

    orders: tuple[str, ...] = ORDERS
    stops: tuple[str, ...] = ("streak:100", "certificate:0.9", "exhausted")
    """As `parse_stop` takes them."""
    noise: float = 0.0
    seeds: int = 1000
    active_seeds: int = 20
    streak: int = 100
    """Of a certificate's ranked pass."""
    readers: tuple[str, ...] = ()
    """As `parse_reader` takes them: each adds READ_ORDERS."""
    prevalence: float | None = None
    """The share of relevant images where readers were calibrated; None for the query's own."""

    def __post_init__(self) -> None:
        """ValueError: an unknown order or stop, nothing or one thing twice to do, numbers out of
        range."""
        several = {"order": self.orders, "stop rule": self.stops, "reader": self.readers or "-"}
        for name, given in several.items():
            if not given or len(set(given)) < len(given):
                raise ValueError(f"Name at least one {name}, each once.")
        if unknown := set(self.orders) - set(ORDERS):
            raise ValueError(f'There is no order "{min(unknown)}"; there are {", ".join(ORDERS)}.')
        for stop in self.stops:
            parse_stop(stop)
        for reader in self.readers:
            parse_reader(reader)
        if not 0 <= self.noise < 1:
            raise ValueError(f"The noise is a share from 0 to less than 1, not {self.noise:g}.")
        if self.seeds < 1 or self.active_seeds < 1:
            raise ValueError("At least one seed is needed.")

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Plan:
        """The plan whose fields JSON holds."""
        several = {name: tuple(data.get(name, ())) for name in ("orders", "stops", "readers")}
        return cls(**{**data, **several})

    @property
    def steps(self) -> list[tuple[str, Stop | None]]:
        """Each order's own figures, then those of its stops."""
        stops = [parse_stop(stop, streak=self.streak) for stop in self.stops]
        read = [f"{order} {reader}" for reader in self.readers for order in READ_ORDERS]
        return [(order, stop) for order in (*self.orders, *read) for stop in (None, *stops)]

    def simulation(self, pool: Pool) -> Simulation:
        """A pool to be simulated by this plan. ValueError: it has no relevant image."""
        return Simulation(
            pool,
            noise=self.noise,
            seeds=self.seeds,
            active_seeds=self.active_seeds,
            prevalence=self.prevalence,
        )


def with_step(figures: Figures, simulation: Simulation, order: str, stop: Stop | None) -> Figures:
    """The figures of a query with those of one more step of its plan."""
    if stop is None:
        if simulation.noise and order.startswith("read "):
            doubts = [*figures.get("doubts", []), asdict(simulation.doubt(order))]
            figures = figures | {"doubts": doubts}
        more = [*figures.get("orders", []), asdict(simulation.order(order))]
        return figures | {"curve_labels": simulation.curve_labels, "orders": more}
    return figures | {"stops": [*figures.get("stops", []), asdict(simulation.stop(order, stop))]}


def figure_rows(queries: Iterable[Figures]) -> Iterator[dict[str, Any]]:
    """A row for each stop of each query's orders: NAMES, ORDER_COLUMNS, DOUBT_COLUMNS, "runs",
    MEANS, and SHARES with their intervals, None where an order or a stop has none.
    """
    for figures in queries:
        doubts = {doubt["order"]: doubt for doubt in figures.get("doubts", [])}
        orders = {order["order"]: order for order in figures["orders"]}
        for stop in figures["stops"]:
            order = orders[stop["order"]]
            row = {name: figures[name] for name in NAMES[:5]}
            row |= {"order": stop["order"], "stop": stop["stop"]}
            row |= {f"labels_to_{recall}": labels for recall, labels in order["labels_to"].items()}
            row |= {name: order[name] for name in ("wss_95", "erf_10", "atd")}
            row |= {name: doubts.get(stop["order"], {}).get(name) for name in DOUBT_COLUMNS}
            row |= {name: stop[name] for name in ("runs", *MEANS)}
            for name in SHARES:
                share = stop[name] or {}
                row |= dict(
                    zip(_edges(name), map(share.get, ("share", "low", "high")), strict=True)
                )
            yield row


def figures_csv(queries: Iterable[Figures]) -> str:
    """`figure_rows` as CSV; a figure that isn't defined is empty."""
    file = io.StringIO()
    edges = (column for name in SHARES for column in _edges(name))
    columns = (*NAMES, *ORDER_COLUMNS, *DOUBT_COLUMNS, "runs", *MEANS, *edges)
    writer = csv.DictWriter(file, columns, lineterminator="\n")
    writer.writeheader()
    for row in figure_rows(queries):
        writer.writerow(row | {"query_text": spreadsheet_text(row["query_text"])})
    return file.getvalue()


def mean_rows(queries: Sequence[Figures]) -> list[dict[str, Any]]:
    """A row for each order and stop over all queries: means of the queries' figures, shares of all
    runs, and as `times_frozen` the ratio of the geometric means of labels to 95 % to those of the
    frozen order, None where that wasn't simulated.
    """
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in figure_rows(queries):
        groups.setdefault((row["order"], row["stop"]), []).append(row)
    to_95 = {
        key: geometric_mean(row["labels_to_95"] for row in rows) for key, rows in groups.items()
    }
    means = []
    for (order, stop), rows in groups.items():
        mean: dict[str, Any] = {"order": order, "stop": stop, "queries": len(rows)}
        base = to_95.get(("frozen", stop))
        mean["times_frozen"] = to_95[order, stop] / base if base else None
        mean |= {name: fmean(row[name] for row in rows) for name in (*ORDER_COLUMNS, *MEANS)}
        if rows[0]["second_opinions"] is not None:
            mean |= {name: fmean(row[name] for row in rows) for name in DOUBT_COLUMNS}
        mean["runs"] = sum(row["runs"] for row in rows)
        for name in SHARES:
            if rows[0][name] is None:
                mean |= dict.fromkeys(_edges(name))
                continue
            hits = sum(round(row[name] * row["runs"]) for row in rows)
            mean |= zip(_edges(name), astuple(Share.of(hits, mean["runs"])), strict=True)
        means.append(mean)
    return means


def _edges(name: str) -> tuple[str, str, str]:
    """The columns of a share and of its interval."""
    return name, f"{name}_low", f"{name}_high"


def order_table(queries: Sequence[Figures]) -> list[Sequence[str]]:
    """The orders' `mean_rows` as cells of a table, its head first."""
    rows = {row["order"]: row for row in mean_rows(queries)}
    return [ORDER_HEAD, *map(_order_cells, rows.values())]


def stop_table(queries: Sequence[Figures]) -> list[Sequence[str]]:
    """The stops' `mean_rows` as cells of a table, its head first; shares with their intervals."""
    return [STOP_HEAD, *map(_stop_cells, mean_rows(queries))]


def doubt_table(queries: Sequence[Figures]) -> list[Sequence[str]]:
    """What second opinions find where a reader doubts labels, as cells of a table, its head first,
    and nothing where none does.
    """
    rows = {row["order"]: row for row in mean_rows(queries) if row.get("second_opinions")}
    cells = []
    for order, row in rows.items():
        asked, *errors = (row[name] for name in DOUBT_COLUMNS)
        cells.append((order, f"{asked:,.1f}", *(f"{100 * each / asked:.1f}" for each in errors)))
    return [DOUBT_HEAD, *cells] if cells else []


def _order_cells(row: dict[str, Any]) -> Sequence[str]:
    times = row["times_frozen"]
    return [
        row["order"],
        *(f"{row[f'labels_to_{recall}']:,.1f}" for recall in RECALLS),
        "–" if times is None else f"{times:.2f}",
        f"{row['wss_95']:.3f}",
        f"{row['erf_10']:.3f}",
        f"{row['atd']:,.1f}",
    ]


def _stop_cells(row: dict[str, Any]) -> Sequence[str]:
    def share(name: str) -> str:
        value, low, high = (row[column] for column in _edges(name))
        if value is None:
            return "–"
        return f"{100 * value:.1f} % ({100 * low:.1f}–{100 * high:.1f})"

    return [
        row["order"],
        row["stop"],
        f"{row['runs']:,}",
        f"{row['labels']:,.1f}",
        f"{100 * row['saved']:.0f} %",
        f"{row['recall']:.3f}",
        f"{row['recall_p5']:.3f}",
        *map(share, SHARES),
    ]
