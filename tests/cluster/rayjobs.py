"""A small RayJob for the tests of the harness. The factory's own are made by its builder."""

from tests.cluster.api import Object

IMAGE = "example.test/ray@sha256:" + "0" * 64


def rayjob(name: str, gpus: int = 8, workers: int = 1, dashboard_port: int = 8265) -> Object:
    """A head without GPUs and some workers; nothing is pulled, since there are no kubelets."""
    head = _pod("head", cpus=1)
    port = {"name": "dashboard", "containerPort": dashboard_port}
    head["spec"]["containers"][0]["ports"] = [port]
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name},
        "spec": {
            "entrypoint": "true",
            "submissionMode": "HTTPMode",
            "shutdownAfterJobFinishes": True,
            "rayClusterSpec": {
                "rayVersion": "2.60.0",
                "headGroupSpec": {
                    "rayStartParams": {"num-gpus": "0"},
                    "template": head,
                },
                "workerGroupSpecs": [
                    {
                        "groupName": "workers",
                        "replicas": workers,
                        "minReplicas": workers,
                        "maxReplicas": workers,
                        "rayStartParams": {},
                        "template": _pod("worker", cpus=1, gpus=gpus),
                    }
                ],
            },
        },
    }


def _pod(name: str, cpus: int, gpus: int = 0) -> Object:
    amounts = {"cpu": str(cpus), "memory": "1Gi"}
    if gpus:
        amounts["nvidia.com/gpu"] = str(gpus)
    container = {
        "name": name,
        "image": IMAGE,
        "resources": {"requests": amounts, "limits": amounts},
    }
    return {"spec": {"containers": [container], "automountServiceAccountToken": False}}
