from framework.interfaces import ConstraintInterpreter


class Mine(ConstraintInterpreter):
    name = "mine"
