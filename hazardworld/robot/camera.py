"""What the robot's camera sees, and boxes around the things in it, drawn by MuJoCo from a Scene.

A model of its own, of bodies that are put where the scene says, so it serves all rows of any engine. The camera looks
ahead as the Point robot's does, from a little higher. Boxes come from MuJoCo's segmentation; the goal is glass and
hides nothing.
"""

from __future__ import annotations

import functools
import os
import warnings

import mujoco
import numpy as np
from numpy.typing import NDArray

from hazardworld.robot.arrays import Scene
from hazardworld.robot.picture import COLORS, FLOOR, GOAL, TILE
from hazardworld.robot.things import BUTTONS, GOAL_RADIUS, GREMLINS, HAZARDS, KINDS, MOST, PILLARS, RADIUS, VASES

SLOTS = len(KINDS) * MOST
"""Boxes of a picture: thing i of kind k has number 4 k + i."""
SHAPES = {
    HAZARDS: ("cylinder", (0.2, 0.01), 0.02),
    VASES: ("box", (0.1, 0.1, 0.1), 0.1),
    PILLARS: ("cylinder", (0.2, 0.5), 0.5),
    BUTTONS: ("sphere", (0.1,), 0.1),
    GREMLINS: ("box", (0.1, 0.1, 0.1), 0.1),
}
"""Of each kind: MuJoCo's shape, its sizes, and the height of its middle; Safety-Gymnasium's."""
GLASS = 5  # the group of the goal
AWAY = -50.0  # where things are put that are not there
HOW = (
    "set MUJOCO_GL=egl (with a graphics driver) or MUJOCO_GL=osmesa (without: `apt install libosmesa6`) "
    "before the command, and `pip install PyOpenGL`"
)


class _Renderer(mujoco.Renderer):
    """MuJoCo's; these are here so that one that could not be made is deleted without complaint."""

    _gl_context = _mjr_context = None


@functools.cache
def camera(side: int) -> Camera:
    """The one camera of this process for that size. Deleting one of two renderers can spoil the other's pictures."""
    return Camera(side)


class Camera:
    """Pictures of ``side`` x ``side`` pixels."""

    def __init__(self, side: int) -> None:
        if side < 8:
            raise ValueError(f"side is {side}, but a picture needs at least 8 pixels")
        self.side = side
        self._model = mujoco.MjModel.from_xml_string(_xml(side))
        self._data = mujoco.MjData(self._model)
        self._robot, self._goal = self._mocap("robot"), self._mocap("goal")
        self._things = [self._mocap(f"{kind}{i}") for kind in KINDS for i in range(MOST)]
        self._slot = np.full(self._model.ngeom + 1, -1)  # the last is for "nothing", which segmentation calls -1
        for slot in range(SLOTS):
            self._slot[self._model.geom(f"{KINDS[slot // MOST]}{slot % MOST}").id] = slot
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # GLFW's remarks on a missing display; the message below says more
                self._renderer = _Renderer(self._model, side, side)
        except Exception as error:  # each of MuJoCo's ways to OpenGL fails with an exception of its own
            chosen = os.environ.get("MUJOCO_GL")
            what = f"MUJOCO_GL={chosen} does not work here" if chosen else "MuJoCo finds no OpenGL here"
            raise ValueError(f"the robot's camera cannot draw: {what} ({type(error).__name__}); {HOW}") from None
        self._renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = False
        self._all, self._solid = mujoco.MjvOption(), mujoco.MjvOption()
        self._all.geomgroup[GLASS], self._solid.geomgroup[GLASS] = 1, 0

    def _mocap(self, body: str) -> int:
        return int(self._model.body(body).mocapid[0])

    def look(self, scene: Scene) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """The picture [side, side, 3], and boxes [20, 4]: left, top, right, bottom in 0..1; zeros if not to be seen."""
        self._put(self._robot, scene.robot, 0.0)
        self._put(self._goal, np.array([*scene.goal, 0.0]), 0.0)
        for slot, body in enumerate(self._things):
            place = scene.things[slot // MOST, slot % MOST]
            if np.isnan(place[0]):
                self._put(body, np.zeros(3), AWAY)
            else:
                self._put(body, place, 0.0)
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)
        renderer = self._renderer
        renderer.update_scene(self._data, "vision", self._all)
        picture = renderer.render().copy()
        renderer.update_scene(self._data, "vision", self._solid)
        renderer.enable_segmentation_rendering()
        seen = self._slot[renderer.render()[..., 0]]
        renderer.disable_segmentation_rendering()
        return picture, self._boxes(seen)

    def _put(self, body: int, place: NDArray[np.float64], height: float) -> None:
        self._data.mocap_pos[body] = place[0], place[1], height
        self._data.mocap_quat[body] = np.cos(place[2] / 2), 0.0, 0.0, np.sin(place[2] / 2)

    def _boxes(self, seen: NDArray[np.int64]) -> NDArray[np.float32]:
        boxes = np.zeros((SLOTS, 4), np.float32)
        for slot in np.unique(seen[seen >= 0]):
            rows, columns = np.nonzero(seen == slot)
            boxes[slot] = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
        return boxes / self.side


def _xml(side: int) -> str:
    def colour(rgb: tuple[int, ...], alpha: float = 1.0) -> str:
        return " ".join(f"{part / 255:.3f}" for part in rgb) + f" {alpha}"

    things = ""
    for kind, name in enumerate(KINDS):
        shape, sizes, height = SHAPES[kind]
        assert sizes[0] == RADIUS[kind]
        for i in range(MOST):
            things += (
                f'<body name="{name}{i}" mocap="true"><geom name="{name}{i}" type="{shape}" pos="0 0 {height}" '
                f'size="{" ".join(map(str, sizes))}" rgba="{colour(COLORS[kind])}"/></body>'
            )
    return f"""
    <mujoco>
      <visual>
        <global offwidth="{side}" offheight="{side}"/><quality offsamples="0"/>
        <headlight ambient="0.5 0.5 0.5" diffuse="0.3 0.3 0.3" specular="0 0 0"/>
      </visual>
      <asset>
        <texture name="floor" type="2d" builtin="checker" width="64" height="64"
          rgb1="{colour(FLOOR)[:-4]}" rgb2="{colour(TILE)[:-4]}"/>
        <material name="floor" texture="floor" texrepeat="8 8"/>
      </asset>
      <worldbody>
        <light pos="0 0 5" dir="0 0 -1" directional="true" diffuse="0.3 0.3 0.3" specular="0 0 0"/>
        <geom type="plane" size="8 8 0.1" material="floor"/>
        <body name="robot" mocap="true">
          <camera name="vision" pos="0 0 0.25" xyaxes="0 -1 0 0.4 0 1" fovy="90"/>
        </body>
        <body name="goal" mocap="true">
          <geom name="goal" type="cylinder" pos="0 0 0.16" size="{GOAL_RADIUS} 0.15" group="{GLASS}"
            rgba="{colour(GOAL, 0.5)}"/>
        </body>
        {things}
      </worldbody>
    </mujoco>"""
