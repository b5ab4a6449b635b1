"""Hoppers, turtles and skinks."""

from __future__ import annotations

from demo.draw.ink import (
    Figure,
    Ink,
    Look,
    box,
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
    star,
)


def hopper(ink: Ink, look: Look) -> Figure:
    """A frog-like jumper: spots, blotches or stripes; the male has a dorsal sail."""
    body, belly, accent = look.body, look.morph.belly, look.morph.accent
    skin = ink.fade(lighter(body, 0.28), body, darker(body, 0.22))
    limb = ink.fade(body, darker(body, 0.3))
    shape = (
        "M-50,-12 C-56,-34 -26,-56 6,-56 C18,-56 22,-62 34,-60 C52,-57 60,-44 57,-34 "
        "C54,-20 36,-12 14,-7 C-8,-2 -40,0 -50,-12 Z"
    )
    parts = []
    if look.young:
        parts.append(line("M-44,-14 Q-66,-14 -74,-26", body, 8))
    if look.moving:
        parts.append(line("M-38,-16 L-66,-2 L-92,-10 L-104,4", darker(body, 0.28), 9))
    if look.male:
        parts.append(
            path(
                "M-38,-40 Q-34,-64 -22,-70 Q-18,-60 -12,-74 Q-4,-64 2,-76 Q10,-66 14,-54 Z", accent
            )
            + line("M-26,-46 L-22,-66 M-12,-52 L-11,-70 M3,-54 L3,-72", darker(accent, 0.3), 1.6)
        )
    if look.displaying:
        sac = ink.glow(
            "#ffffff/0.95", f"{lighter(accent, 0.35)}/0.95", f"{accent}/0.95", at=(0.35, 0.3)
        )
        parts.append(dot(50, -20, 24, sac))
    parts.append(path(shape, skin))
    parts.append(
        group(
            path("M60,-34 C40,-20 0,-12 -50,-14 L-50,6 L60,6 Z", belly, opacity=0.9)
            + _hopper_marks(look),
            clip_path=ink.clip(shape),
        )
    )
    parts.append(speckles([(-34, -30), (-18, -42), (-6, -30), (8, -44), (22, -34)], 3.2, look))
    if look.moving:
        parts.append(line("M-30,-18 L-60,-12 L-84,4 L-98,14", limb_colour(body), 11))
        parts.append(line("M22,-14 L42,-2 L58,-4", limb_colour(body), 7.5))
        parts.append(oval(-28, -22, 24, 14, limb, -12))
    else:
        parts.append(line("M-10,-8 L-40,-6 L-14,-2 L2,-2", limb_colour(body), 8))
        parts.append(oval(-28, -20, 25, 16, limb, -28))
        parts.append(line("M24,-16 L22,-3 L36,-2 M22,-3 L30,0", limb_colour(body), 7))
    if look.trait == "horned":
        parts.append(path("M22,-58 L20,-76 L32,-62 Z", darker(body, 0.25)))
    parts.append(dot(33, -58, 12, body) + eye(35, -59, 8.5, look, accent))
    if look.defending:
        parts.append(path("M58,-40 L30,-32 L54,-20 Z", "#7d1f2c"))
    else:
        parts.append(line("M57,-37 Q44,-27 26,-32", darker(body, 0.5), 2))
    return Figure(
        "".join(parts),
        (58, -34),
        (20, -30),
        (-10, -56),
        (-4, -32),
        ((-44, -34), (-30, -48), (-14, -55), (2, -57), (16, -58)),
        front=(66, 0),
        collar=(5, 17, 12),
        lift=24 if look.moving else 0,
    )


def limb_colour(body: str) -> str:
    """Limbs are a shade darker than the body."""
    return darker(body, 0.15)


def _hopper_marks(look: Look) -> str:
    dark = darker(look.body, 0.48)
    if look.pattern == "spots":
        places = [
            (-38, -34, 5),
            (-24, -46, 4.5),
            (-8, -38, 6),
            (8, -48, 4.5),
            (16, -34, 4),
            (-20, -28, 4),
        ]
        return "".join(dot(x, y, r, dark, opacity=0.8) for x, y, r in places)
    if look.pattern == "blotches":
        return (
            oval(-34, -40, 13, 8, dark, -30, opacity=0.7)
            + oval(-8, -48, 13, 7, dark, 8, opacity=0.7)
            + oval(14, -40, 9, 6, dark, 40, opacity=0.7)
        )
    pale = lighter(look.body, 0.65)
    return line("M-52,-22 C-36,-44 0,-50 60,-42", pale, 4.5) + line(
        "M-50,-36 C-30,-54 0,-58 30,-54", dark, 4
    )


def turtle(ink: Ink, look: Look) -> Figure:
    """A domed turtle with stars on its shell; the male has a red cheek and a long tail."""
    body, belly, accent = look.body, look.morph.belly, look.morph.accent
    skin = "#7fa06a" if not look.male else "#6d9a72"
    shell = ink.glow(lighter(body, 0.4), body, darker(body, 0.4), at=(0.4, 0.2))
    hidden = look.defending
    parts = []
    swing = -14 if look.moving else 0
    parts.append(line(f"M-44,-16 L-{66 if look.male else 56},-8", darker(skin, 0.2), 7))
    if not hidden:
        neck = "M34,-22 Q52,-26 58,-36" if not look.asleep else "M34,-18 Q52,-16 58,-14"
        hx, hy = (64, -40) if not look.asleep else (64, -15)
        parts.append(line(neck, skin, 15))
        parts.append(oval(hx, hy, 16, 12.5, ink.fade(lighter(skin, 0.2), skin), -8))
        if look.male:
            parts.append(oval(hx - 2, hy + 2, 7, 3.6, "#e0402f", -8))
        parts.append(eye(hx + 5, hy - 4, 5.2, look, accent))
        parts.append(line(f"M{hx + 15},{hy + 3} L{hx + 5},{hy + 5}", darker(skin, 0.5), 1.6))
        if look.displaying:
            parts.append(line("M58,-20 L86,-30 M58,-14 L88,-16 M58,-24 L80,-44", "#e0402f", 3.4))
    else:
        parts.append(oval(42, -18, 12, 10, "#3d3527"))
        parts.append(dot(45, -19, 2.6, "#fff7d0"))
    for x in (-30, 26):
        parts.append(
            group(
                box(x - 9, -18, 18, 18, ink.fade(skin, darker(skin, 0.3)), 8),
                f"rotate({swing} {x} -14)",
            )
        )
    dome = "M-50,-16 C-52,-52 -22,-70 0,-70 C24,-70 52,-52 50,-16 C30,-8 -30,-8 -50,-16 Z"
    parts.append(path(dome, shell))
    dark = darker(body, 0.45)
    parts.append(
        group(
            line("M-26,-64 L-18,-10 M26,-64 L18,-10 M-54,-38 L54,-38", dark, 2.4, opacity=0.6)
            + "".join(
                star(x, y, r, accent, 6)
                for x, y, r in (
                    (0, -54, 10),
                    (-33, -44, 8),
                    (33, -44, 8),
                    (0, -25, 9),
                    (-34, -22, 7),
                    (34, -22, 7),
                )
            ),
            clip_path=ink.clip(dome),
        )
    )
    parts.append(
        path("M-52,-17 C-30,-7 30,-7 52,-17 C48,-7 30,-4 0,-4 C-30,-4 -48,-7 -52,-17 Z", belly)
    )
    parts.append(
        speckles([(-16, -56), (16, -56), (-14, -36), (16, -34), (-42, -30), (42, -30)], 3, look)
    )
    mouth = (80.0, -38.0) if not look.asleep else (80.0, -12.0)
    return Figure(
        "".join(parts),
        mouth,
        (48, -26),
        (0, -70),
        (-12, -32),
        ((-46, -40), (-32, -60), (-12, -70), (10, -70), (30, -62), (46, -40)),
        front=(76, 0),
        collar=(5, 10, 10),
        lift=10 if look.moving else 0,
    )


def lizard(ink: Ink, look: Look) -> Figure:
    """A long-tailed skink: bands, or spots and a neck frill; the male has a spiny crest."""
    body, belly, accent = look.body, look.morph.belly, look.morph.accent
    skin = ink.fade(lighter(body, 0.3), body, darker(body, 0.25))
    parts = []
    tail = "M-34,-18 C-58,-16 -66,-4 -84,-6 C-98,-8 -98,-26 -86,-28"
    if look.moving:
        tail = "M-34,-20 C-60,-30 -72,-14 -90,-24 C-100,-30 -104,-40 -98,-46"
    parts.append(
        line(tail, darker(body, 0.12), 9) + line("M-30,-18 C-50,-18 -58,-10 -68,-7", body, 14)
    )
    if look.male:
        spines: list[tuple[float, float]] = [(-40, -24)]
        for step in range(6):
            spines += [(-36 + step * 12, -46 - (step % 2) * 3), (-30 + step * 12, -32)]
        parts.append(polygon([*spines, (34, -26), (-40, -20)], accent))
    legs = darker(body, 0.2)
    if look.moving:
        parts.append(line("M-26,-14 L-44,2 L-54,-2 M22,-14 L42,0 L50,-4", legs, 7))
    else:
        parts.append(line("M-24,-14 L-36,-6 L-30,0 L-22,0 M22,-14 L30,-6 L26,0 L36,0", legs, 7))
    shape = (
        "M-46,-18 C-40,-36 -8,-38 20,-35 C30,-46 48,-46 62,-34 C70,-28 66,-22 54,-21 "
        "C42,-18 34,-12 16,-9 C-8,-5 -34,-6 -46,-18 Z"
    )
    if look.trait == "frill" or look.displaying:
        reach = 27 if look.trait == "frill" else 15
        if look.displaying:
            reach += 10
        fan = ink.glow(lighter(accent, 0.5), accent, darker(accent, 0.35))
        parts.append(oval(31, -30, reach * 0.55, reach, fan, -14))
        for angle in (-50, -25, 0, 25, 50):
            parts.append(
                group(
                    line(f"M31,-30 L31,{-30 - reach + 2}", darker(accent, 0.4), 1.3),
                    f"rotate({angle - 14} 31 -30)",
                )
            )
    parts.append(path(shape, skin))
    dark = darker(body, 0.5)
    marks = path("M60,-22 C30,-16 -10,-10 -48,-14 L-48,4 L60,4 Z", belly)
    if look.pattern == "bands":
        marks += "".join(
            line(f"M{x},-44 L{x - 5},-6", dark, 5.5, opacity=0.85) for x in (-32, -17, -2, 13)
        )
    else:
        marks += "".join(
            dot(x, y, 3.6, lighter(accent, 0.15))
            for x, y in ((-32, -24), (-20, -30), (-8, -23), (4, -30), (14, -22))
        )
    parts.append(group(marks, clip_path=ink.clip(shape)))
    parts.append(speckles([(-30, -26), (-16, -28), (-4, -26), (10, -28), (22, -24)], 2.8, look))
    parts.append(eye(48, -34, 6, look, accent))
    if look.defending:
        parts.append(
            path("M68,-31 L46,-27 L66,-18 Z", "#8d2434") + line("M54,-25 L78,-24", "#ef6a7a", 2.4)
        )
    else:
        parts.append(line("M66,-27 L50,-25", darker(body, 0.55), 1.8))
    return Figure(
        "".join(parts),
        (67, -27),
        (28, -26),
        (-6, -37),
        (-8, -22),
        ((-40, -30), (-26, -35), (-12, -37), (4, -37), (18, -36)),
        front=(74, 0),
        collar=(4.5, 12, 14),
        lift=16 if look.moving else 0,
    )
