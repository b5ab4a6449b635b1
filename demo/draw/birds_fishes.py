# ruff: noqa: E501  (path data stays on one line)
"""Songbirds, stilts and pondfins."""

from __future__ import annotations

from demo.draw.ink import (
    Figure,
    Ink,
    Look,
    darker,
    dot,
    eye,
    group,
    lighter,
    line,
    oval,
    path,
    polygon,
    speckles,
)


def songbird(ink: Ink, look: Look) -> Figure:
    """A finch or warbler: wing bar, mask or streaks; only males wear the crest or bright bib."""
    body, belly, accent = look.body, look.morph.belly, look.morph.accent
    plumage = ink.fade(lighter(body, 0.25), body, darker(body, 0.2))
    dark = darker(body, 0.45)
    parts = []
    long = 26 if look.trait == "longtail" else 0
    if look.displaying:
        for angle in (-58, -40, -22, -4, 14):
            tone = accent if angle in (-40, -4) else lighter(body, 0.15)
            parts.append(
                group(oval(-62, -34, 30 + long / 2, 8.5, tone), f"rotate({-angle} -34 -34)")
            )
    else:
        parts.append(
            path(
                f"M-30,-40 L-{72 + long},-{28 - long / 3:.0f} L-{68 + long},-{17 - long / 3:.0f} L-30,-24 Z",
                ink.fade(body, dark),
            )
        )
    shape = (
        "M-44,-32 C-40,-54 -12,-60 4,-66 C8,-84 40,-88 48,-70 C52,-58 46,-46 42,-36 "
        "C36,-16 10,-8 -10,-12 C-28,-16 -42,-22 -44,-32 Z"
    )
    if not look.moving and not look.asleep:
        parts.append(
            line(
                "M-4,-14 L-6,-1 M-6,-1 L4,0 M-6,-1 L-13,0 M10,-14 L10,-1 M10,-1 L20,0 M10,-1 L3,0",
                "#6a4a35",
                3,
            )
        )
    if look.moving:
        parts.append(
            path("M6,-52 C0,-86 -30,-108 -52,-112 C-48,-92 -40,-70 -16,-46 Z", darker(body, 0.3))
        )
    if look.male:
        crest = accent if look.trait == "crest" else darker(accent, 0.05)
        if look.trait == "crest":
            parts.append(
                path(
                    "M16,-78 C8,-96 -4,-104 -14,-104 C-6,-98 -4,-94 -2,-88 C-8,-92 -14,-92 -18,-90 C-6,-84 4,-76 10,-70 Z",
                    crest,
                )
            )
        else:
            parts.append(path("M22,-82 C16,-94 6,-96 0,-94 C6,-88 8,-82 10,-74 Z", crest))
    parts.append(path(shape, plumage))
    marks = path("M50,-60 C40,-50 20,-42 6,-26 C-6,-16 -30,-18 -44,-24 L-30,6 L60,0 Z", belly)
    if look.male:
        marks += oval(36, -46, 13, 12, accent, -20)
    if look.pattern == "mask":
        marks += path("M22,-80 L54,-78 L54,-62 C42,-60 30,-60 22,-64 Z", "#262a35")
    if look.pattern == "streaks":
        marks += line(
            "M14,-32 L10,-24 M24,-36 L21,-27 M2,-26 L-2,-19 M30,-28 L27,-20 M16,-22 L13,-16",
            dark,
            2.6,
        )
    parts.append(group(marks, clip_path=ink.clip(shape)))
    wing = ink.fade(darker(body, 0.12), dark)
    if look.moving:
        parts.append(path("M10,-50 C-4,-86 8,-112 30,-122 C34,-100 34,-70 22,-46 Z", wing))
        parts.append(line("M14,-60 C8,-84 16,-100 26,-110", lighter(accent, 0.2), 3.5))
    else:
        lift = -18 if look.displaying else 0
        marked = path("M14,-52 C-2,-58 -34,-46 -50,-28 C-30,-22 4,-22 14,-52 Z", wing)
        if look.pattern == "wingbar":
            marked += line("M6,-46 L-4,-28 M-4,-48 L-16,-28", "#fff6df", 3.6)
        else:
            marked += line("M4,-40 Q-16,-34 -34,-29", lighter(body, 0.2), 2)
        parts.append(group(marked, f"rotate({lift} 12 -50)"))
    parts.append(
        speckles([(-26, -38), (-12, -44), (2, -40), (-16, -28), (12, -52), (26, -40)], 3, look)
    )
    beak = "#e9a13b" if look.young else "#4a4038"
    if look.defending:
        parts.append(
            polygon([(46, -76), (66, -80), (48, -68)], beak)
            + polygon([(46, -64), (62, -54), (46, -68)], beak)
        )
    else:
        parts.append(path("M47,-76 L66,-67 L47,-62 Z", beak))
    parts.append(eye(34, -71, 5.6, look))
    return Figure(
        "".join(parts),
        (66, -67),
        (-6, -5),
        (-16, -57),
        (-2, -38),
        ((-38, -46), (-26, -53), (-12, -58), (0, -64), (8, -76), (20, -84)),
        front=(54, 0),
        collar=(5, 4, 0),
        lift=34 if look.moving else 0,
    )


def wader(ink: Ink, look: Look) -> Figure:
    """A long-legged stilt with a straight or a curved bill; males have head plumes."""
    body, belly, accent = look.body, look.morph.belly, look.morph.accent
    plumage = ink.fade(lighter(body, 0.3), body, darker(body, 0.22))
    dark = darker(body, 0.45)
    legs = "#e0523c" if look.trait == "straight" else "#5c4a68"
    parts = []
    if look.moving:
        parts.append(line("M-26,-52 L-76,-40 M-24,-48 L-72,-32", legs, 3.4))
        parts.append(
            path("M4,-66 C-6,-96 -30,-114 -54,-118 C-48,-98 -40,-76 -18,-58 Z", darker(body, 0.3))
        )
    elif look.asleep:
        parts.append(line("M0,-40 L0,0 L12,0 M0,0 L-6,0", legs, 3.6))
    else:
        parts.append(line("M-8,-44 L-14,-22 L-10,0 L2,0 M8,-44 L4,-22 L10,0 L22,0", legs, 3.6))
    parts.append(path("M-30,-62 L-62,-52 L-58,-44 L-28,-46 Z", dark))
    shape = "M-42,-52 C-36,-74 -2,-80 20,-70 C34,-62 28,-46 12,-40 C-8,-34 -38,-38 -42,-52 Z"
    if look.displaying:
        for angle in (20, 40, 60, 80):
            parts.append(
                group(
                    oval(-50, -58, 32, 7, lighter(body, 0.2) if angle % 40 else accent),
                    f"rotate({angle} -18 -58)",
                )
            )
    if look.asleep:
        neck, head = "M14,-64 C24,-80 16,-88 6,-82", (2.0, -80.0)
    else:
        neck, head = "M14,-62 C34,-70 22,-92 32,-102", (36.0, -106.0)
    hx, hy = head
    parts.append(line(neck, body, 12))
    if look.male:
        plume = f"M{hx - 4},{hy - 8} C{hx - 18},{hy - 14} {hx - 28},{hy - 6} {hx - 34},{hy + 8}"
        parts.append(
            line(plume, accent, 4)
            + line(
                f"M{hx - 6},{hy - 4} C{hx - 16},{hy - 4} {hx - 22},{hy + 4} {hx - 26},{hy + 16}",
                accent,
                3,
            )
        )
    parts.append(path(shape, plumage))
    parts.append(
        group(
            path("M30,-58 C10,-46 -20,-44 -44,-48 L-40,-20 L40,-20 Z", belly),
            clip_path=ink.clip(shape),
        )
    )
    wing = ink.fade(darker(body, 0.1), dark)
    if look.moving:
        parts.append(path("M12,-64 C6,-98 20,-122 42,-130 C42,-108 38,-80 24,-58 Z", wing))
    else:
        parts.append(path("M12,-66 C-8,-72 -38,-62 -56,-46 C-30,-42 4,-44 12,-66 Z", wing))
    parts.append(oval(hx, hy, 12, 10, ink.fade(lighter(body, 0.2), body)))
    if look.pattern == "cap":
        parts.append(
            path(
                f"M{hx - 12},{hy - 1} C{hx - 10},{hy - 13} {hx + 10},{hy - 13} {hx + 12},{hy - 1} Z",
                "#2b3038",
            )
        )
    bill = "#2b2a33" if look.trait == "straight" else "#3d3147"
    if look.asleep:
        parts.append(line(f"M{hx - 8},{hy + 3} L{hx - 26},{hy + 12}", bill, 3.6))
    elif look.trait == "straight":
        parts.append(line(f"M{hx + 11},{hy + 1} L{hx + 42},{hy + 5}", bill, 3.4))
    else:
        parts.append(
            line(
                f"M{hx + 11},{hy} C{hx + 26},{hy} {hx + 36},{hy + 6} {hx + 38},{hy + 18}", bill, 3.8
            )
        )
    if look.defending:
        parts.append(line(f"M{hx + 10},{hy + 5} L{hx + 34},{hy + 20}", "#d8434a", 3))
    parts.append(
        speckles([(-26, -58), (-12, -62), (2, -60), (-16, -50), (-2, -50), (12, -54)], 3, look)
    )
    parts.append(eye(hx + 4, hy - 1, 4.6, look))
    tip = (hx + 40, hy + (5 if look.trait == "straight" else 16))
    return Figure(
        "".join(parts),
        tip,
        (6, -12),
        (-14, -76),
        (-8, -56),
        ((-38, -62), (-26, -70), (-12, -75), (2, -77), (16, -72)),
        front=(48, 0),
        collar=(4.5, 4, 0),
        lift=22 if look.moving else 0,
    )


def fish(ink: Ink, look: Look) -> Figure:
    """A deep-bodied pondfin: banded and short-finned, or spotted with veils; males wear a sail."""
    body, belly, accent = look.body, look.morph.belly, look.morph.accent
    scales = ink.fade(darker(body, 0.12), body, lighter(belly, 0.1))
    fin = ink.fade(f"{accent}/0.95", f"{lighter(accent, 0.4)}/0.75")
    veil = look.trait == "veil"
    wide = 1.35 if look.displaying else 1.0
    parts = []
    reach = 44 if veil else 26
    parts.append(
        path(
            f"M-38,-40 C-52,-54 -{50 + reach},-{62 * wide:.0f} -{48 + reach},-70 C-{36 + reach},-48 -{36 + reach},-34 -{48 + reach},-6 C-{50 + reach / 2},-14 -52,-28 -38,-40 Z",
            fin,
        )
    )
    top = 96 if look.male else 76
    top = top + 14 if look.displaying else top
    parts.append(path(f"M-28,-58 C-24,-{top} 2,-{top + 6} 26,-62 Z", fin))
    parts.append(
        line(
            f"M-16,-60 L-14,-{top - 8} M-2,-64 L2,-{top - 8} M10,-62 L14,-{top - 14}",
            darker(accent, 0.2),
            1.3,
            opacity=0.6,
        )
    )
    deep = 22 if veil else 10
    parts.append(
        path(
            f"M-14,-20 C-24,-6 -34,{deep - 8} -44,{deep - 6} C-30,{deep - 20} -10,-12 10,-18 Z", fin
        )
    )
    shape = "M-42,-40 C-28,-66 20,-72 52,-44 C56,-40 56,-38 52,-34 C24,-10 -26,-12 -42,-40 Z"
    parts.append(path(shape, scales))
    dark = darker(body, 0.5)
    marks = ""
    if look.pattern == "bands":
        marks = "".join(
            line(f"M{x},-74 Q{x + 6},-40 {x},-8", darker(accent, 0.1), 7.5, opacity=0.9)
            for x in (-24, -6, 12)
        )
    else:
        places = ((-26, -40), (-14, -50), (-12, -34), (2, -46), (4, -30), (16, -54), (18, -38))
        marks = "".join(dot(x, y, 3.6, dark, opacity=0.75) for x, y in places)
    marks += path("M26,-70 Q20,-40 28,-8 L60,-8 L60,-70 Z", lighter(body, 0.18), opacity=0.75)
    marks += oval(2, -62, 44, 7, "#ffffff", 0, opacity=0.22)
    parts.append(group(marks, clip_path=ink.clip(shape)))
    parts.append(path("M18,-34 C8,-24 -4,-20 -10,-24 C-2,-32 8,-38 18,-34 Z", fin))
    parts.append(
        speckles([(-28, -46), (-16, -40), (-4, -52), (6, -40), (16, -48), (-6, -30)], 3, look)
    )
    parts.append(eye(38, -44, 6.6, look, accent))
    if look.defending:
        parts.append(oval(53, -37, 5, 8, "#7d1f2c"))
    else:
        parts.append(line("M54,-38 L46,-34", darker(body, 0.55), 2))
    return Figure(
        "".join(parts),
        (56, -37),
        (22, -28),
        (-4, -66),
        (-4, -42),
        ((-32, -56), (-20, -63), (-6, -67), (8, -67), (22, -64)),
        front=(50, 20),
        collar=(5, 21, 6),
        lift=16 if look.moving else 0,
    )
