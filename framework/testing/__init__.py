"""The conformance kit: does a plugin keep its interface's contract? Ships to plugin authors.

In your own test suite::

    from framework.testing import check_interpreter
    def test_my_reader():
        check_interpreter(MyReader)

or from the shell: ``python -m framework.check my_reader.py``. Every built-in plugin passes through the same functions.
Each raises ``ContractBroken``, whose text says in words what is wrong, all of it at once.
"""

from framework.testing.contract import ContractBroken
from framework.testing.env import check_env
from framework.testing.interpreter import check_interpreter
from framework.testing.optimizer import check_optimizer
from framework.testing.policy import check_policy

__all__ = ["ContractBroken", "check_env", "check_interpreter", "check_optimizer", "check_policy"]
