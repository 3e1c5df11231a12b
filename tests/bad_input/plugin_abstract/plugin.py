from framework.hookspecs import hookimpl
from framework.interfaces import ConstraintInterpreter


class Mine(ConstraintInterpreter):
    name = "mine"


@hookimpl
def heed_components():
    return [Mine]
