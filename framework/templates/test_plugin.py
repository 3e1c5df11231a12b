"""Type: pytest test_my_plugin.py. The kit tries every promise of the interface; add what is special about yours."""

from pathlib import Path

import pytest
from my_plugin import Config, MyPlugin

from framework.run import main
from framework.testing import check_interpreter

HERE = Path(__file__).parent


def test_it_keeps_its_contract() -> None:
    assert check_interpreter(MyPlugin)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="must be"):
        Config(buckets=0)


def test_every_system_of_the_registry_can_be_built() -> None:
    assert main([str(HERE / "my_plugin.yaml"), "--check"]) == 0
