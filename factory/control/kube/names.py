"""Names and labels of a run's objects, valid whatever a person called things.

The name follows from what the run is, so that a second try to create it meets the first. Labels
say the same in words, for `kubectl get rayjobs -L ai-factory/mix` and for whoever sweeps.
"""

import hashlib
import json
import re

from factory.control.clusters.words import is_label_value

PREFIX = "ai-factory"
OWNER = f"{PREFIX}/owner"
RUN = f"{PREFIX}/run"
ROOT_RUN = f"{PREFIX}/root-run"
STEP = f"{PREFIX}/step"
ATTEMPT = f"{PREFIX}/attempt"
ROLE = f"{PREFIX}/role"
MANAGED_BY = "app.kubernetes.io/managed-by"

MAX_NAME_CHARACTERS = 47
"""KubeRay refuses a RayJob with a longer name, but takes it first."""

_NAME_DIGITS = 24
_SLUG_CHARACTERS = 50


def job_name(root_run_id: str, step_key: str, attempt: int) -> str:
    """The RayJob of that attempt: `run-` and a hash of all three."""
    identity = json.dumps([root_run_id, step_key, attempt])
    return f"run-{hashlib.sha256(identity.encode()).hexdigest()[:_NAME_DIGITS]}"


def secret_name(job: str) -> str:
    """Of the Secret that holds the Ray token of the RayJob of that name."""
    return f"{job}-token"


def label_value(text: str) -> str:
    """The text where a label may hold it; else what is readable of it, and a hash of the whole."""
    if is_label_value(text):
        return text
    slug = re.sub(r"[^A-Za-z0-9]+", "-", text)[:_SLUG_CHARACTERS].strip("-")
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{slug}-{digest}" if slug else digest
