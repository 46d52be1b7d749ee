"""The process that holds one local Ray cluster: `local` starts `python -m factory.control.head`.

Ray's own node object is used, not `ray start`: the command also starts a Ray Client server (on a
fixed port, and it cannot be told not to) and loads Ray Serve, and takes twice as long.

The Ray processes are tied to this one by the kernel and die with it; when one of them dies, so does
this process, and the run fails. When the owner of the session dies, this process ends the session;
a sweep does so where both were killed.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ray._private.node import Node

READY = "ready"
"""File in the session's directory that shows that drivers can connect."""

POLL_SECONDS = 1.0


def main() -> None:
    """Start the cluster that the argument describes and hold it while the owner lives."""
    request: dict[str, Any] = json.loads(sys.argv[1])
    directory = Path(request["directory"])
    node = _start(request, directory)
    (directory / READY).touch()
    while os.getppid() == request["owner"]:
        dead: list[tuple[str, Any]] = node.dead_processes()
        if dead:
            sys.exit(f"{', '.join(name for name, _ in dead)} of Ray died")
        time.sleep(POLL_SECONDS)
    _end_session(Path(request["state"]), request["session"])


def _start(request: dict[str, Any], directory: Path) -> "Node":
    from ray._private.node import Node
    from ray._private.parameter import RayParams

    parameters = RayParams(
        node_ip_address=request["address"],
        gcs_server_port=request["port"],
        temp_dir=str(directory / "ray"),
        num_cpus=request["num_cpus"],
        num_gpus=request["num_gpus"],
        object_store_memory=request["object_store_bytes"],
        include_dashboard=False,
        dashboard_host=request["address"],
        no_monitor=True,  # the autoscaler: there is one node
        node_manager_port=0,
        min_worker_port=0,
        max_worker_port=0,
        dashboard_agent_listen_port=0,
    )
    return Node(parameters, head=True, shutdown_at_exit=True, spawn_reaper=True)


def _end_session(state: Path, session_id: str) -> None:
    from factory.control.sessions import Sessions

    sessions = Sessions(state)
    for session in sessions.all():
        if session.id == session_id:
            sessions.close(session)


if __name__ == "__main__":
    main()
