from framework.api import history as history
from framework.api import load as load
from framework.api import results as results
from framework.trained_agent import load_agent as load_agent

__version__: str
