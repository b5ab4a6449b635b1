# ruff: noqa: E501  (path data stays on one line)
"""Brushfoxes, beetles and sailwings."""

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


def fox(ink: Ink, look: Look) -> Figure:
    """A bushy-tailed fox: dark socks or a face mask; males have a mane."""
    if look.behaviour == "sleeping":
        return _curled_fox(ink, look)
    body, belly, accent = look.body, look.morph.belly, look.morph.accent
    fur = ink.fade(lighter(body, 0.22), body, darker(body, 0.2))
    far, near = darker(body, 0.35), darker(body, 0.1)
    sock = accent if look.pattern == "socks" else near
    parts = [_tail(ink, look)]
    if look.moving:
        parts.append(line("M22,-26 L42,-12 L58,-12 M-30,-28 L-48,-10 L-64,-6", far, 7.5))
        parts.append(line("M28,-26 L52,-20 M-26,-26 L-42,-2 L-56,2", near, 8.5))
        parts.append(line("M46,-21 L66,-18 M-44,0 L-58,3", sock, 7.5))
    else:
        parts.append(line("M16,-26 L15,-1 M-20,-28 L-22,-1", far, 8))
        parts.append(line("M26,-26 L27,-2 L31,-2 M-32,-28 L-38,-14 L-34,-2 L-30,-2", near, 9))
        parts.append(line("M27,-12 L27,-2 L31,-2 M-36,-10 L-34,-2 L-30,-2", sock, 8))
    shape = "M-44,-34 C-44,-58 -16,-58 6,-56 C24,-58 40,-52 40,-38 C40,-24 26,-20 10,-22 C-8,-18 -42,-14 -44,-34 Z"
    parts.append(path(shape, fur))
    parts.append(
        group(
            path("M44,-34 C20,-24 -16,-22 -46,-26 L-44,0 L44,0 Z", belly, opacity=0.85),
            clip_path=ink.clip(shape),
        )
    )
    if look.male:
        mane = polygon(
            [
                (6, -60),
                (10, -74),
                (18, -66),
                (22, -82),
                (30, -72),
                (38, -84),
                (42, -66),
                (54, -60),
                (46, -46),
                (50, -34),
                (38, -34),
                (34, -20),
                (26, -32),
                (14, -28),
                (16, -42),
                (4, -46),
            ],
            darker(body, 0.38),
        )
        parts.append(mane)
    low = 10 if look.dead else 0
    hx, hy = 48, -62 + low
    for x, tip in ((hx - 10, -4), (hx + 4, 6)):
        parts.append(
            path(f"M{x - 7},{hy - 8} L{x + tip / 2:.0f},{hy - 34} L{x + 9},{hy - 10} Z", body)
        )
        parts.append(
            path(f"M{x - 3},{hy - 10} L{x + tip / 2:.0f},{hy - 27} L{x + 6},{hy - 11} Z", accent)
        )
    parts.append(
        path(
            f"M{hx - 20},{hy - 2} C{hx - 18},{hy - 20} {hx + 12},{hy - 20} {hx + 16},{hy - 4} L{hx + 36},{hy + 9} C{hx + 34},{hy + 16} {hx + 14},{hy + 18} {hx},{hy + 17} C{hx - 14},{hy + 16} {hx - 20},{hy + 8} {hx - 20},{hy - 2} Z",
            fur,
        )
    )
    parts.append(
        path(
            f"M{hx - 16},{hy + 8} C{hx - 2},{hy + 6} {hx + 14},{hy + 4} {hx + 36},{hy + 9} C{hx + 34},{hy + 16} {hx + 14},{hy + 18} {hx},{hy + 17} C{hx - 8},{hy + 16} {hx - 14},{hy + 13} {hx - 16},{hy + 8} Z",
            belly,
        )
    )
    if look.pattern == "mask":
        parts.append(
            oval(hx + 4, hy - 3, 13, 6.4, accent if look.morph.name != "black" else "#d5d8dd", 8)
        )
    parts.append(dot(hx + 36, hy + 8, 3.8, "#17141c"))
    if look.defending:
        parts.append(
            path(f"M{hx + 34},{hy + 12} L{hx + 8},{hy + 12} L{hx + 28},{hy + 26} Z", "#8d2434")
        )
        parts.append(
            polygon([(hx + 29, hy + 12), (hx + 27, hy + 18), (hx + 25, hy + 12)], "#ffffff")
        )
    parts.append(
        speckles([(-30, -42), (-16, -48), (-2, -42), (10, -48), (24, -42), (-22, -32)], 3.4, look)
    )
    parts.append(eye(hx + 6, hy - 4, 4.8, look, "#d08a2a"))
    return Figure(
        "".join(parts),
        (hx + 34, hy + 13),
        (33, -48),
        (-10, -57),
        (-6, -40),
        ((-36, -54), (-22, -58), (-8, -58), (6, -58), (20, -60)),
        front=(64, 0),
        collar=(5, 15, 24),
        lift=18 if look.moving else 0,
    )


def _tail(ink: Ink, look: Look) -> str:
    body, accent = look.body, look.morph.accent
    brush = ink.fade(lighter(body, 0.15), darker(body, 0.2))
    if look.displaying:
        shape = "M-38,-46 C-54,-70 -78,-92 -62,-118 C-38,-116 -32,-84 -30,-50 Z"
        tip = "M-80,-98 L-30,-104 L-40,-130 L-80,-130 Z"
        rings = "M-70,-84 L-34,-88 M-62,-70 L-32,-72 M-72,-98 L-34,-102"
    else:
        shape = "M-38,-46 C-58,-60 -84,-56 -104,-34 C-88,-18 -58,-22 -38,-34 Z"
        tip = "M-88,-60 L-82,-14 L-112,-14 L-112,-60 Z"
        rings = "M-58,-62 L-54,-16 M-72,-62 L-68,-16 M-86,-62 L-82,-14"
    inside = (
        path(tip, lighter(body, 0.85)) if look.trait == "whitetip" else line(rings, accent, 6.5)
    )
    return path(shape, brush) + group(inside, clip_path=ink.clip(shape))


def _curled_fox(ink: Ink, look: Look) -> Figure:
    body, belly, accent = look.body, look.morph.belly, look.morph.accent
    fur = ink.fade(lighter(body, 0.22), body, darker(body, 0.25))
    parts = [oval(0, -24, 50, 25, fur)]
    if look.male:
        parts.append(
            polygon(
                [
                    (14, -50),
                    (22, -60),
                    (28, -50),
                    (38, -56),
                    (40, -44),
                    (54, -42),
                    (46, -32),
                    (52, -20),
                    (20, -14),
                ],
                darker(body, 0.38),
            )
        )
    for x in (24, 40):
        parts.append(
            path(f"M{x - 7},-34 L{x},-54 L{x + 8},-36 Z", body)
            + path(f"M{x - 3},-36 L{x},-48 L{x + 5},-37 Z", accent)
        )
    parts.append(path("M14,-24 C14,-42 46,-44 52,-28 L60,-12 C54,-4 30,-4 20,-10 Z", fur))
    if look.pattern == "mask":
        parts.append(
            oval(40, -25, 12, 5.6, accent if look.morph.name != "black" else "#d5d8dd", 12)
        )
    parts.append(
        path("M24,-10 C36,-14 50,-14 60,-12 C54,-4 30,-4 24,-10 Z", belly)
        + dot(60, -12, 3.4, "#17141c")
    )
    shape = "M-46,-22 C-60,-2 -18,6 14,-2 C28,-6 36,-8 42,-2 C30,12 -52,16 -58,-8 Z"
    parts.append(path(shape, ink.fade(lighter(body, 0.15), darker(body, 0.15))))
    inside = path("M18,-20 L18,14 L60,14 L60,-20 Z", lighter(body, 0.85))
    if look.trait != "whitetip":
        inside = line("M-30,-16 L-30,16 M-14,-10 L-14,16 M2,-10 L2,16 M18,-12 L18,14", accent, 6)
    parts.append(group(inside, clip_path=ink.clip(shape)))
    parts.append(speckles([(-30, -32), (-16, -40), (-2, -34), (-20, -24), (8, -42)], 3.4, look))
    parts.append(eye(40, -26, 4.8, look))
    return Figure(
        "".join(parts),
        (60, -10),
        (18, -30),
        (-8, -48),
        (-14, -30),
        ((-36, -40), (-22, -47), (-8, -49), (6, -48), (18, -46)),
        front=(72, 0),
        collar=(5, 16, 20),
    )


def beetle(ink: Ink, look: Look) -> Figure:
    """A glossy beetle: striped with a horn, or round and spotted; males have long jaws or a horn."""
    body, belly, accent = look.body, look.morph.belly, look.morph.accent
    gloss = ink.glow(lighter(body, 0.55), body, darker(body, 0.4), at=(0.38, 0.22))
    dark = darker(body, 0.62)
    parts = []
    if look.moving or look.displaying:
        film = ink.fade("#ffffff/0.85", f"{belly}/0.6")
        parts.append(oval(-34, -70, 36, 13, film, 30) + oval(-18, -80, 36, 13, film, 56))
    legs = "M-28,-16 L-46,-10 L-52,0 M-4,-14 L-8,-4 L-14,0 M22,-14 L30,-6 L28,0"
    if look.moving:
        legs = "M-28,-16 L-46,-4 L-54,6 M-4,-14 L-14,2 L-22,8 M22,-14 L30,2 L24,10"
    if look.dead:
        legs = "M-28,-16 L-40,-4 L-36,0 M-4,-14 L4,-4 L-2,0 M22,-14 L14,-4 L18,0"
    parts.append(line(legs, "#241f2b", 4.6))
    round_body = look.trait == "round"
    top = -66 if round_body else -54
    shape = f"M-52,-18 C-54,-48 -30,{top} -2,{top} C18,{top} 30,-44 30,-18 C16,-8 -38,-8 -52,-18 Z"
    raised = look.moving or look.displaying
    shell = path(shape, gloss)
    if round_body:
        marks = "".join(
            dot(x, y, r, accent)
            for x, y, r in (
                (-36, -34, 6.5),
                (-18, -52, 6.5),
                (-14, -28, 7),
                (6, -44, 7),
                (16, -24, 6),
            )
        )
    else:
        marks = line(
            f"M-54,-26 C-30,-46 0,-46 32,-38 M-54,-14 C-30,-30 4,-32 34,-24 M-40,-46 C-20,-56 0,-56 20,{top}",
            accent,
            4,
        )
    marks += oval(-14, top + 9, 20, 4.5, "#ffffff", -8, opacity=0.4)
    shell += group(marks, clip_path=ink.clip(shape))
    shell += line(f"M-2,{top} C-10,-40 -14,-26 -12,-10", dark, 1.8, opacity=0.7)
    shell += speckles(
        [(-42, -26), (-28, -40), (-24, -22), (-6, -38), (8, -30), (20, -36)], 3.2, look
    )
    if raised:
        parts.append(oval(-10, -18, 36, 11, belly))
        shell = (
            group(shell, "rotate(-20 26 -18)")
            if look.displaying
            else group(shell, "rotate(-9 26 -18)")
        )
    parts.append(shell)
    parts.append(
        path(
            "M26,-14 C24,-46 34,-50 46,-44 C56,-38 56,-20 50,-13 Z",
            ink.fade(darker(body, 0.1), dark),
        )
    )
    parts.append(dot(57, -24, 11, dark))
    if look.male:
        if round_body:
            parts.append(
                line("M64,-30 C78,-38 90,-30 88,-18 M64,-22 C74,-26 82,-22 82,-14", dark, 5)
            )
        else:
            parts.append(path("M46,-38 C54,-64 70,-72 84,-70 C74,-62 66,-50 62,-30 Z", dark))
            parts.append(line("M56,-48 C62,-60 70,-66 78,-68", lighter(body, 0.3), 2))
    if look.defending:
        parts.append(line("M64,-28 L82,-36 M64,-18 L80,-6", "#8d2434", 5))
    parts.append(
        line("M60,-34 C68,-46 78,-48 86,-44 M56,-34 C60,-50 68,-56 76,-56", "#241f2b", 2.2)
    )
    parts.append(eye(60, -26, 5, look))
    return Figure(
        "".join(parts),
        (68, -18),
        (-22, -34),
        (-10, top),
        (-20, -26),
        ((-44, -40), (-30, -50), (-14, top), (2, top), (18, -52)),
        front=(74, 0),
        collar=(0, 0, 0),
        lift=20 if look.moving else 0,
    )


def butterfly(ink: Ink, look: Look) -> Figure:
    """A sailwing with borders, veins or eye-spots; males have long tail streamers."""
    body, accent = look.body, look.morph.accent
    dark = "#2b2430"
    wing = ink.glow(lighter(body, 0.45), body, darker(body, 0.18), at=(0.75, 0.7))
    back = ink.glow(lighter(body, 0.2), darker(body, 0.12), darker(body, 0.35), at=(0.75, 0.3))
    closed = look.asleep and not look.dead
    front = "M6,-38 C-4,-80 -40,-106 -66,-98 C-74,-80 -56,-46 0,-34 Z"
    rear = "M2,-34 C-30,-48 -62,-46 -68,-26 C-70,-6 -34,2 4,-26 Z"
    if closed:
        front = "M8,-28 C-2,-70 -16,-100 -36,-104 C-52,-92 -40,-50 2,-26 Z"
        rear = "M4,-26 C-26,-56 -52,-54 -54,-34 C-52,-16 -22,-12 6,-22 Z"
    far = "M8,-38 C14,-84 44,-110 66,-104 C74,-84 54,-50 12,-34 Z"
    parts = []
    if look.male:
        tone = accent if look.morph.name != "white" else darker(accent, 0.1)
        parts.append(line("M-52,-16 C-66,-6 -70,6 -82,8 M-40,-12 C-50,0 -52,10 -62,16", tone, 5))
    if not closed:
        parts.append(path(far, back) + group(_wing_marks(look, far=True), clip_path=ink.clip(far)))
        if look.displaying:
            parts.append(path("M10,-34 C34,-46 66,-40 66,-22 C58,-4 30,-8 10,-26 Z", back))
    parts.append(path(rear, back) + group(_rear_marks(look), clip_path=ink.clip(rear)))
    parts.append(path(front, wing) + group(_wing_marks(look), clip_path=ink.clip(front)))
    parts.append(
        speckles(
            [(-20, -58), (-34, -70), (-14, -44), (-46, -82), (-40, -30), (-26, -26)], 3.2, look
        )
    )
    if not look.moving:
        parts.append(line("M8,-22 L2,0 M14,-22 L16,0 M4,-22 L-8,-2", dark, 2.2))
    parts.append(line("M-14,-14 L24,-38", dark, 10) + line("M-8,-17 L14,-31", mix_body(look), 4))
    parts.append(dot(28, -41, 7.5, dark))
    spread = 10 if look.defending else 0
    parts.append(
        line(
            f"M30,-46 C36,-62 44,-70 54,-{74 + spread} M33,-44 C44,-56 54,-60 64,-{58 - spread}",
            dark,
            2,
        )
    )
    parts.append(dot(54, -74 - spread, 2.6, accent) + dot(64, -58 + spread, 2.6, accent))
    if look.defending:
        parts.append(line("M34,-38 C46,-34 52,-24 46,-14", "#b3314a", 3.2))
    parts.append(eye(30, -42, 4.2, look))
    return Figure(
        "".join(parts),
        (35, -36),
        (-34, -76),
        (-20, -82) if not closed else (-18, -80),
        (-26, -62),
        ((-62, -96), (-48, -98), (-34, -92), (-20, -80), (-8, -66)),
        front=(50, 0),
        collar=(0, 0, 0),
        lift=34 if look.moving else 0,
    )


def mix_body(look: Look) -> str:
    """Fur on the thorax takes the wing colour."""
    return lighter(look.body, 0.25)


def _wing_marks(look: Look, far: bool = False) -> str:
    accent = look.morph.accent
    rim = darker(accent, 0.05) if look.morph.name != "white" else "#4a4550"
    turn = "scale(-1 1) translate(-10 -4)" if far else ""
    if look.pattern == "borders":
        marks = line("M-40,-108 L-74,-98 L-66,-70 L-40,-44 L-10,-34", rim, 15)
        marks += "".join(
            dot(x, y, 2.4, "#ffffff") for x, y in ((-62, -92), (-64, -80), (-58, -68), (-48, -56))
        )
    elif look.pattern == "veins":
        marks = line(
            "M4,-36 L-66,-98 M4,-36 L-68,-76 M4,-36 L-40,-104 M4,-36 L-56,-58 M4,-36 L-16,-96",
            rim,
            2.6,
        )
        marks += line("M-40,-108 L-74,-98 L-66,-70", rim, 7)
    else:
        marks = (
            dot(-40, -76, 15, rim)
            + dot(-40, -76, 11, "#fff2c9")
            + dot(-40, -76, 7, "#2b2430")
            + dot(-43, -79, 2.6, "#ffffff")
        )
    return group(marks, turn)


def _rear_marks(look: Look) -> str:
    rim = look.morph.accent if look.morph.name != "white" else "#4a4550"
    if look.pattern == "borders":
        return line("M-72,-44 L-70,-10 L-34,4", rim, 10)
    if look.pattern == "veins":
        return line("M2,-32 L-70,-36 M2,-30 L-62,-12 M2,-28 L-34,-2", rim, 2.4)
    return dot(-44, -26, 9, rim) + dot(-44, -26, 6, "#fff2c9") + dot(-44, -26, 3.6, "#2b2430")
