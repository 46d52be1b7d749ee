"""Overrides are refused with what would have been right."""

import pytest

from factory.discovery import check_overrides, recipe_fields, recipe_names
from factory.errors import SpecError
from factory.overrides import Field, parse
from factory.training.profiles import refuse_overrides

RECIPE = "debug.pretrain"


def test_recipes_and_their_fields_are_known_without_the_trainer():
    assert RECIPE in recipe_names()
    field = recipe_fields(RECIPE)["train.train_iters"]
    assert (field.type, field.default, field.minimum) == ("int", 80, 1)
    for name in recipe_names():
        assert recipe_fields(name)


def test_values_are_parsed_by_the_type_of_the_field():
    assert check_overrides(
        RECIPE,
        {
            "train.train_iters": "200",
            "optimizer.lr": "1e-4",
            "model.add_bias_linear": "TRUE",
            "scheduler.lr_decay_iters": "none",
            "scheduler.lr_decay_style": "linear",
        },
    ) == {
        "train.train_iters": 200,
        "optimizer.lr": 1e-4,
        "model.add_bias_linear": True,
        "scheduler.lr_decay_iters": None,
        "scheduler.lr_decay_style": "linear",
    }


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("train.train_iter", "5", "Did you mean train.train_iters"),
        ("train_iters", "5", "Did you mean train.train_iters"),
        ("model.lr", "5", "Did you mean optimizer.lr"),
        ("", "5", "has no field ''"),
        ("train.train_iters", "many", "takes a whole number from 1 to 100,000,000, not 'many'"),
        ("train.train_iters", "1.5", "a whole number"),
        ("train.train_iters", "", "a whole number"),
        ("train.train_iters", "0", "train.train_iters is 0; it takes a whole number from 1"),
        ("optimizer.lr", "nan", "takes a number"),
        ("optimizer.lr", "inf", "takes a number"),
        ("optimizer.lr", "-1", "optimizer.lr is -1; it takes a number from 0 to 10"),
        ("model.add_bias_linear", "yes", "takes true or false, not 'yes'"),
        ("checkpoint.save", "/elsewhere", "has no field 'checkpoint.save' that a run may set"),
        ("rng.seed", "5", "has no field 'rng.seed' that a run may set"),
        ("model.__class__", "5", "has no field 'model.__class__'"),
    ],
)
def test_a_bad_override_says_what_would_be_right(path, text, expected):
    with pytest.raises(SpecError) as caught:
        check_overrides(RECIPE, {path: text})
    assert expected in str(caught.value)


def test_all_that_is_wrong_is_said_at_once():
    with pytest.raises(SpecError) as caught:
        check_overrides(RECIPE, {"a.b": "1", "train.train_iters": "x"})
    assert len(str(caught.value).splitlines()) == 2


def test_an_unknown_recipe_lists_those_there_are():
    with pytest.raises(SpecError, match=r"No recipe 'debug\.sft'. Known: debug\.pretrain"):
        check_overrides("debug.sft", {})


def test_choices_are_listed():
    field = Field(type="choice", default="a", choices=["a", "b"])
    with pytest.raises(SpecError, match="one of a, b, not 'c'"):
        parse("x.y", "c", field)
    assert parse("x.y", "b", field) == "b"


def test_what_the_hardware_decides_cannot_be_overridden():
    with pytest.raises(SpecError, match=r"model\.bf16 is set by the cpu profile"):
        refuse_overrides({"model.bf16": "true"}, "cpu")
    refuse_overrides({"model.bf16": "true"}, "h100")
