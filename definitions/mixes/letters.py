"""A private mix: discharge letters, with public articles so that the model keeps what it knew."""

from definitions.datasets.private.text.discharge_letters import discharge_letters
from definitions.datasets.public.text.plos import plos
from factory.data.mix import Mix

letters = Mix(domain_shift=[(3.0, discharge_letters)], retention=[(1.0, plos)])
