"""What an image says of itself, as processes in it and their children read it."""

import pytest

from factory.errors import SettingsError
from factory.settings import Settings


@pytest.mark.parametrize("said", ["install", "mounted"])
def test_an_image_says_whether_it_holds_its_packages(said: str) -> None:
    settings = Settings.from_environment({"FACTORY_DEPENDENCIES": said})
    assert settings.dependencies == said
    assert Settings.from_environment(settings.environment()) == settings


def test_a_working_tree_says_nothing_of_that() -> None:
    settings = Settings.from_environment({})
    assert settings.dependencies is None
    assert "FACTORY_DEPENDENCIES" not in settings.environment()


def test_another_word_is_refused() -> None:
    with pytest.raises(SettingsError, match="'installed'; an image sets it to one of install, mou"):
        Settings.from_environment({"FACTORY_DEPENDENCIES": "installed"})
