"""Recipes: one function per stage that returns a Megatron-Bridge `ConfigContainer` for H100s.

A recipe is named `module.function`. What a profile changes is in `factory.training.profiles`, what
one run changes in its overrides; `fields.json` lists the fields that a run may change.
"""
