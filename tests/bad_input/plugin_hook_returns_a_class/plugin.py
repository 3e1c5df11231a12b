from framework.hookspecs import hookimpl
from plugins.interpreters.oracle import Oracle


@hookimpl
def heed_components():
    return Oracle
