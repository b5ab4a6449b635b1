# ruff: noqa: E501  (path data stays on one line)
"""Whorl snails and dew spiders."""

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
    speckles,
)


def snail(ink: Ink, look: Look) -> Figure:
    """A land snail with a round ribboned or a tall plain shell; the "male" phase has a lip spike."""
    body, belly, accent = look.body, look.morph.belly, look.morph.accent
    flesh = ink.fade(lighter(belly, 0.2), belly, darker(belly, 0.25))
    shell = ink.glow(lighter(body, 0.5), body, darker(body, 0.35), at=(0.35, 0.25))
    parts = []
    retracted = look.defending or look.asleep
    stretch = 14 if look.moving else 0
    if retracted:
        parts.append(path("M-40,0 C-30,-10 28,-14 42,-6 C46,0 40,0 36,0 Z", flesh))
    else:
        parts.append(
            path(
                f"M-{70 + stretch},0 C-46,-14 -8,-16 22,-16 C34,-18 {36 + stretch},-44 {50 + stretch},-46 C{66 + stretch},-44 {64 + stretch},-26 {56 + stretch},-12 C{52 + stretch},-4 {46 + stretch},0 {38 + stretch},0 Z",
                flesh,
            )
        )
        hx = 54 + stretch
        droop = 6 if look.displaying else 0
        parts.append(
            line(
                f"M{hx - 4},-42 L{hx - 6},-66 M{hx + 4},-42 L{hx + 14},-62",
                darker(belly, 0.12),
                4.2,
            )
        )
        parts.append(eye(hx - 6, -69, 5.4, look, accent) + eye(hx + 15, -65, 5.4, look, accent))
        parts.append(line(f"M{hx + 8},-24 L{hx + 2},-22", darker(belly, 0.5), 1.8))
        if look.displaying:
            parts.append(
                line(
                    f"M{hx + 2},-34 C{hx + 22},-40 {hx + 24},-{28 - droop} {hx + 34},-34",
                    "#ffffff",
                    3.6,
                )
            )
            parts.append(dot(hx + 36, -35, 4.2, "#ff8fa8"))
    tall = look.trait == "tall"
    if tall:
        shape = "M-44,-10 C-54,-34 -50,-84 -26,-104 C-8,-92 30,-56 30,-26 C30,-6 -34,-2 -44,-10 Z"
    else:
        shape = "M-44,-10 C-58,-44 -34,-80 -2,-80 C30,-80 44,-44 32,-16 C24,-4 -34,-2 -44,-10 Z"
    parts.append(path(shape, shell))
    dark = darker(body, 0.42)
    if tall:
        whorls = line(
            "M-50,-26 C-24,-16 8,-22 32,-36 M-50,-50 C-30,-40 -4,-48 18,-62 M-46,-76 C-32,-68 -16,-74 0,-84",
            dark,
            2.8,
        )
        whorls += line("M-38,-20 C-40,-50 -36,-80 -26,-96", "#ffffff", 5, opacity=0.35)
    else:
        swirl = "M-4,-38 C2,-44 12,-38 8,-28 C2,-16 -22,-20 -24,-40 C-24,-62 12,-68 24,-46"
        whorls = line(swirl, dark, 3) + line("M24,-46 C32,-24 8,-8 -34,-10", dark, 3)
        whorls += oval(-16, -66, 14, 5, "#ffffff", -22, opacity=0.4)
    if look.pattern == "ribbons":
        whorls += line("M-52,-34 C-44,-74 -4,-84 40,-54", accent, 4.5) + line(
            "M-50,-18 C-44,-26 -40,-54 -20,-70", accent, 3.6
        )
        whorls += line("M-38,-8 C-10,-4 18,-10 36,-28", accent, 4.5)
    parts.append(group(whorls, clip_path=ink.clip(shape)))
    if look.male:
        parts.append(
            path("M22,-40 L52,-56 L34,-22 Z" if not tall else "M22,-40 L50,-58 L32,-20 Z", accent)
        )
        parts.append(
            path(
                "M-34,-66 L-52,-82 L-24,-76 Z" if not tall else "M-46,-60 L-64,-72 L-44,-76 Z",
                accent,
            )
        )
    if look.defending:
        parts.append(
            "".join(
                dot(x, y, r, "#ffffff", opacity=0.85)
                for x, y, r in (
                    (40, -6, 6),
                    (48, -12, 5),
                    (50, -3, 5),
                    (58, -5, 4),
                    (56, -14, 3),
                    (34, -14, 4),
                )
            )
        )
    parts.append(
        speckles([(-34, -28), (-30, -46), (-10, -58), (8, -52), (18, -32), (-12, -16)], 3.2, look)
    )
    top = -104.0 if tall else -80.0
    mouth = (62.0 + stretch, -22.0) if not retracted else (44.0, -6.0)
    return Figure(
        "".join(parts),
        mouth,
        (-8, -40),
        (-8, top + (14 if tall else 0)),
        (-12, -36),
        ((-48, -40), (-44, -58), (-32, -72), (-14, top + 6), (6, top + 8)),
        front=(82, 0),
        collar=(0, 0, 0),
        lift=0,
    )


def spider(ink: Ink, look: Look) -> Figure:
    """A round orb-weaver: a cross or bands on the abdomen; males have long feelers and red knees."""
    body, accent = look.body, look.morph.accent
    ball = ink.glow(lighter(body, 0.5), body, darker(body, 0.35), at=(0.38, 0.25))
    leg = darker(body, 0.35) if look.morph.name != "white" else "#8b8478"
    knee = "#e03b34" if look.male else lighter(leg, 0.25)
    reach = 1.0 if look.trait == "long" else 0.84
    if look.asleep:
        reach *= 0.62
    parts = []
    up = 30 if (look.displaying or look.defending) else 0
    for x, kx, ky, fx in (
        (12, -26, -52, -56),
        (16, -6, -58, -22),
        (20, 52, -58, 46),
        (22, 66, -46, 78),
    ):
        fy = 0.0
        if up and x >= 20:
            fy = -58.0 - up
            ky -= 22
        if look.moving:
            fx -= 16 if x < 18 else -12
            ky += 16
            fy -= 6
        kx2, fx2 = x + (kx - x) * reach, x + (fx - x) * reach
        ky2 = -24 + (ky + 24) * reach
        parts.append(line(f"M{x},-24 L{kx2:.0f},{ky2:.0f} L{fx2:.0f},{fy:.0f}", leg, 4.4))
        parts.append(dot(kx2, ky2, 4.2, knee))
    shape = "M-66,-34 C-66,-62 -30,-70 -8,-56 C8,-46 8,-24 -8,-14 C-30,-2 -64,-8 -66,-34 Z"
    parts.append(path(shape, ball))
    if look.pattern == "cross":
        marks = line("M-34,-62 L-30,-14 M-54,-42 L-10,-38", accent, 6.5) + "".join(
            dot(x, y, 3, accent) for x, y in ((-48, -54), (-18, -54), (-48, -24), (-16, -24))
        )
    else:
        marks = line(
            "M-54,-66 Q-48,-36 -54,-6 M-36,-70 Q-30,-36 -36,-2 M-18,-68 Q-12,-36 -18,-4", accent, 6
        )
    marks += oval(-34, -58, 18, 4.5, "#ffffff", -8, opacity=0.35)
    parts.append(group(marks, clip_path=ink.clip(shape)))
    parts.append(
        speckles([(-52, -36), (-40, -50), (-24, -52), (-40, -22), (-22, -26), (-10, -40)], 3, look)
    )
    parts.append(oval(16, -28, 19, 14, ink.fade(lighter(body, 0.2), darker(body, 0.3))))
    if look.male:
        parts.append(
            line("M30,-22 L46,-18 M28,-18 L42,-8", leg, 3.4)
            + dot(48, -18, 6, knee)
            + dot(44, -7, 6, knee)
        )
    if look.defending:
        parts.append(line("M32,-24 L40,-14 M28,-20 L32,-8", "#8d2434", 4.2))
    else:
        parts.append(line("M32,-24 L36,-17", darker(leg, 0.3), 3.4))
    parts.append(eye(25, -34, 5.6, look) + eye(33, -30, 3.6, look) + eye(15, -37, 3.6, look))
    return Figure(
        "".join(parts),
        (38, -18),
        (-30, -36),
        (-30, -62),
        (-32, -34),
        ((-62, -48), (-50, -58), (-36, -63), (-20, -62), (-6, -54)),
        front=(62, 0),
        collar=(0, 0, 0),
        lift=16 if look.moving else 0,
    )
