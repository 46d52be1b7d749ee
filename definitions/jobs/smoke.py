"""The debug recipe on the smoke mix: a minute of real training, to see that everything works."""

from factory.control.training import training_job
from factory.spec import RunSpec

smoke = training_job(
    "smoke",
    RunSpec(recipe="debug.pretrain", mix="smoke", purpose="smoke"),
    description=__doc__,
)
