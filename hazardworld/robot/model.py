"""One MuJoCo model for all maps.

Safety-Gymnasium writes and compiles its XML at every reset. Nearly all of that time goes into textures, of which
physics knows nothing: without them the XML compiles in two milliseconds, and a model that is compiled once can be
re-placed on another map in a tenth of that. ``place`` leaves the same numbers in the model that compiling would (a
test compares).
"""

from __future__ import annotations

import copy
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np
import xmltodict
from numba import njit
from numpy.typing import NDArray

from hazardworld.robot.layout import Layouts
from hazardworld.robot.loader import load
from hazardworld.robot.task import classes
from hazardworld.robot.things import BUTTONS, GREMLINS, KINDS, PILLARS, RADIUS, TRAVEL, VASES

DRAWN_ONLY = ("goal", "hazard")  # discs on the floor, which nothing collides with
UNUSED_SENSORS = ("subtreecom", "subtreelinvel", "subtreeangmom")
MEMORY = "4M"  # for contacts; Safety-Gymnasium's setting takes 486 MB
MOVING, SOLID = (VASES, GREMLINS), (PILLARS, BUTTONS)
ROBOT, OTHER = -1, -2  # what a geom can be besides a thing of one of the kinds
WELD_POSE = slice(3, 10)  # where the relative pose stands in the data of a weld


def physics_xml(layouts: Layouts, map_index: int = 0) -> str:
    """What Safety-Gymnasium would compile for a map, without what neither moves nor is in the way nor is observed."""

    class PhysicsWorld(load().World):  # type: ignore[misc]
        """World.build sets ``xml_string`` and compiles what it then reads from there."""

        _text: str | None = None

        @property
        def xml_string(self) -> str | None:
            return self._text

        @xml_string.setter
        def xml_string(self, text: str | None) -> None:
            if text is None:
                return
            world = self.xml["mujoco"]
            floor = world["worldbody"]
            floor["body"] = [body for body in floor["body"] if not body["@name"].startswith(DRAWN_ONLY)]
            for part in (floor, floor["body"][0]):
                del part["camera"]
            for geom in floor["geom"]:
                del geom["@material"]
            for sensor in UNUSED_SENSORS:
                del world["sensor"][sensor]
            del floor["light"], world["asset"]
            world["size"] = {"@memory": MEMORY}
            self._text = xmltodict.unparse(self.xml)

    task = classes().Task(layouts, 1, 1)
    task.choose(map_index)
    config = task._build_world_config(task.random_generator.build_layout())
    world = PhysicsWorld(task.agent, task._obstacles, config)
    world.build()
    return str(world.xml_string)


def cut(xml: str, counts: tuple[int, ...]) -> str:
    """The same world with fewer things, and with the robot's frame at the origin."""
    tree = ElementTree.fromstring(xml)
    floor = tree.find("worldbody")
    ties = tree.find("equality")
    assert floor is not None
    kept = {"agent"} | {name for kind in MOVING + SOLID for i in range(counts[kind]) for name in body_names(kind, i)}
    for body in floor.findall("body"):
        if body.get("name") not in kept:
            floor.remove(body)
    if ties is not None:  # there are gremlins
        for tie in ties.findall("weld"):
            if tie.get("body1") not in kept:
                ties.remove(tie)
    robot = floor.find("body")
    assert robot is not None and robot.get("name") == "agent"
    height = robot.get("pos", "").split()[2]
    robot.set("pos", f"0 0 {height}")
    robot.set("quat", "1 0 0 0")
    return ElementTree.tostring(tree, "unicode")


def body_names(kind: int, index: int) -> tuple[str, ...]:
    """Safety-Gymnasium's names for one thing; the first is where it is, the second what it is tied to."""
    name = f"{KINDS[kind][:-1]}{index}"
    return (f"{name}obj", f"{name}mocap") if kind == GREMLINS else (name,)


class Blueprint:
    """A compiled model, and where in it everything is."""

    def __init__(self, xml: str, counts: tuple[int, ...]) -> None:
        self.model = mujoco.MjModel.from_xml_string(xml)
        self.robot = self._body("agent")
        self.static = [(k, i, self._body(body_names(k, i)[0])) for k in SOLID for i in range(counts[k])]
        self.moving = [(k, i, self._body(body_names(k, i)[0])) for k in MOVING for i in range(counts[k])]
        self.mocap = [self._body(body_names(GREMLINS, i)[1]) for i in range(counts[GREMLINS])]
        names = [self.model.geom(g).name for g in range(self.model.ngeom)]
        self._kind_of = np.array([_kind(name) for name in names], np.int64)

    def _body(self, name: str) -> int:
        return int(self.model.body(name).id)

    def place(self, model: Any, data: Any, layouts: Layouts, m: int) -> None:
        """Put map m into a copy of the model, and start its data afresh."""
        model.body_pos[self.robot, :2] = layouts.robot[m, :2]
        model.body_quat[self.robot] = quaternion(layouts.robot[m, 2])
        for kind, i, body in self.static + self.moving:
            x, y, rotation = layouts.things[m, kind, i]
            model.body_pos[body, :2] = x, y
            model.body_quat[body] = quaternion(rotation)
        for _, _, body in self.moving:
            at = model.jnt_qposadr[model.body_jntadr[body]]
            model.qpos0[at : at + 3] = model.body_pos[body]
            model.qpos0[at + 3 : at + 7] = model.body_quat[body]
        for i, body in enumerate(self.mocap):
            geom = model.body_geomadr[body]  # never collides; where it is drawn
            model.geom_pos[geom, :2] = layouts.things[m, GREMLINS, i, :2]
            model.geom_quat[geom] = quaternion(layouts.things[m, GREMLINS, i, 2])
        model.eq_data[:, WELD_POSE] = 0  # a pose of zeros is filled in anew from the places of both bodies
        mujoco.mj_resetData(model, data)  # mj_setConst takes the poses of mocap bodies from the data
        mujoco.mj_setConst(model, data)
        mujoco.mj_resetData(model, data)

    def check(self, layouts: Layouts, m: int) -> None:
        """Placing map m, for which the model was compiled, must give the compiled model back."""
        model = copy.copy(self.model)
        data = mujoco.MjData(model)
        data.mocap_pos[:] = 1.0  # as if left over from an episode
        self.place(model, data, layouts, m)
        for name in ("qpos0", "body_pos", "body_quat", "eq_data", "body_invweight0", "dof_invweight0", "dof_M0"):
            if not np.array_equal(getattr(model, name), getattr(self.model, name)):
                raise RuntimeError(
                    f"MuJoCo {mujoco.__version__} does not re-place a model as 3.3.7 does ({name} is not what "
                    "compiling gives): `pip install mujoco==3.3.7`"
                )

    def touching(self, data: Any) -> NDArray[np.bool_]:
        """[5]: of which kinds the data has a contact with the robot. Hazards never have one."""
        found: NDArray[np.bool_] = _touched(data.contact.geom, self._kind_of)
        return found


def targets(steps: int, timestep: float) -> NDArray[np.float64]:
    """[steps, 3]: where Safety-Gymnasium puts the body that a gremlin is tied to, before each physics step.

    MuJoCo adds up its time step by step, so this does too: a product would differ in the last digits.
    """
    time = np.add.accumulate(np.concatenate([[0.0], np.full(steps - 1, timestep)]))
    return np.stack([TRAVEL * np.sin(time), TRAVEL * np.cos(time), np.full(steps, RADIUS[GREMLINS])], 1)


def _kind(geom: str) -> int:
    """What a geom counts for when there is a contact."""
    if geom in ("agent", "pointarrow"):
        return ROBOT
    return next((kind for kind, name in enumerate(KINDS) if geom.startswith(name[:-1])), OTHER)


def quaternion(rotation: float) -> NDArray[np.float64]:
    """Of a rotation about the vertical, as the XML compiler leaves it."""
    result = np.array([np.cos(rotation / 2), 0.0, 0.0, np.sin(rotation / 2)])
    mujoco.mju_normalize4(result)
    return result


@njit(cache=True)
def _touched(pairs, kind_of):  # type: ignore[no-untyped-def]
    """``pairs`` [contacts, 2] of geoms; ``kind_of`` [geoms] a kind, ROBOT, or OTHER."""
    found = np.zeros(len(KINDS), np.bool_)
    for c in range(len(pairs)):
        one, other = kind_of[pairs[c, 0]], kind_of[pairs[c, 1]]
        if one == ROBOT and other >= 0:
            found[other] = True
        elif other == ROBOT and one >= 0:
            found[one] = True
    return found
