"""The smoke mix: one small public dataset, enough to see a loss fall."""

from definitions.datasets.public.text.plos import plos
from factory.data.mix import Mix

smoke = Mix(domain_shift=[(1.0, plos)])
