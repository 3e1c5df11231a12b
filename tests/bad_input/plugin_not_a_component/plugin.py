from framework.hookspecs import hookimpl
from framework.interfaces import ConstraintInterpreter


class Mine:
    pass


class Unnamed(ConstraintInterpreter):
    Config = dict

    def encode(self, sentences): ...
    def step(self, inputs, state): ...


@hookimpl
def heed_components():
    return [Mine, Unnamed, 3]
