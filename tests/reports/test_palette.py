"""Colours of methods: distinct, the same for an agent on every page, and apart for colour-blind readers."""

import itertools

import numpy as np
import pytest

from steadyrl.evaluation.agent_looks import DARK, LIGHT
from steadyrl.reports.palette import Palette, shown_first

# Machado, Oliveira and Fernandes (2009), complete deficiency, for linear RGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]],
    "deuteranopia": [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
    "tritanopia": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}
LEAST = 12
"""Distance in CIELAB; 2.3 is just noticeable."""


def linear(colour):
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(rgb, 0, 1) / [0.95047, 1, 1.08883]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("kind", VISION)
@pytest.mark.parametrize("hues", [LIGHT, DARK], ids=["light", "dark"])
def test_hues_stay_apart(hues, kind):
    seen = [lab(np.array(VISION[kind]) @ linear(hue)) for hue in hues]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > LEAST


def look(palette, method):
    return palette.colour(method), palette.dash(method)


def test_no_two_methods_look_alike():
    agents = {f"method {index}": f"agent {index % 7}" for index in range(84)}
    palette = Palette(agents)
    assert len({look(palette, method) for method in agents}) == 84


def test_an_agent_has_its_colour_on_every_page():
    alone = Palette({"MG": "mg"})
    among = Palette({"REINFORCE": "reinforce", "PPO": "ppo", "MG, lambda 1": "mg", "MG, lambda 2": "mg", "MVO": "mvo"})
    assert alone.colour("MG") == among.colour("MG, lambda 1") == LIGHT[0]
    assert among.colour("REINFORCE") == LIGHT[6]
    assert len({among.colour(method) for method in among.methods}) == 5
    assert among.dash("MG, lambda 1") != among.dash("MG, lambda 2")


def test_colours_are_given_for_both_themes():
    styles = Palette({"MG": "mg"}).styles()
    assert styles.count(f"--m0:{DARK[0]}") == 2
    assert styles.startswith(f":root{{--m0:{LIGHT[0]}")


def test_each_agent_has_a_turn_before_the_menu():
    agents = {**{f"MG {i}": "mg" for i in range(9)}, "MVO 1": "mvo", "MVO 2": "mvo", "PPO": "ppo"}
    assert shown_first(agents) == {"MG 0", "MG 1", "MG 2", "MG 3", "MVO 1", "MVO 2", "PPO"}
    assert shown_first({"MG": "mg"}) == {"MG"}
