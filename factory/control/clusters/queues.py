"""Queues: what a run waits in, by what it is for."""

from typing import Literal

from pydantic import Field

from factory.control.clusters.common import Part
from factory.control.clusters.words import ClassName, QueueName

type SubmissionMode = Literal["http", "sidecar"]


class Queue(Part, frozen=True):
    """One of KAI's queues, and how runs in it are treated."""

    name: QueueName = Field(description="The queue, as KAI knows it.")
    priority_class: ClassName | None = Field(
        default=None, description="PriorityClass of the pods; the scheduler's own default if unset."
    )
    preemptible: bool = Field(
        default=True, description="Whether KAI may end such a run to make room for another."
    )
    submission: SubmissionMode = Field(
        default="http",
        description="How KubeRay starts the driver. `sidecar` ends a run whose head is lost, and "
        "needs `pod_security: baseline`.",
    )
    nodes: int | None = Field(default=None, ge=1, description="Most nodes of one run in it.")
    grace_seconds: float | None = Field(
        default=None,
        ge=0,
        le=86_400,
        allow_inf_nan=False,
        description="What a pod gets to end when its place is taken; the cluster's if unset.",
    )
