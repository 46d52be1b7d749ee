"""A dashboard behind the proxy of an API server, as a client of ours meets it."""

import contextlib
import ssl
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from factory.control.kube.api import Api, Patience, connect
from factory.control.kube.dashboard import Dashboard
from tests.cluster.certificates import write_server_identity
from tests.cluster.dashboard import Dashboard as Scripted
from tests.cluster.dashboard import Job, dashboard
from tests.control.a_cluster import a_cluster

JOB = "train-1-x7k2p"
RAY_CLUSTER = "train-1-raycluster-abcde"
RAY_CANARY = "canary-ray-4c81aa"
API_CANARY = "canary-api-97b2e0"
PATIENCE = Patience(connect_seconds=30, answer_seconds=30, budget_seconds=0.2)


@dataclass
class Proxied:
    """The scripted dashboard, its one job, and a client of it."""

    told: Scripted
    job: Job
    client: Dashboard
    api: Api
    folder: Path


@contextlib.contextmanager
def proxied(folder: Path) -> Generator[Proxied]:
    """TLS, two tokens, and a job that runs."""
    write_server_identity(folder, "the test", ["127.0.0.1"])
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "server.crt", folder / "server.key")
    (folder / "token").write_text(API_CANARY)
    with dashboard("127.0.0.1", tls) as told:
        told.token, told.proxy_token = RAY_CANARY, API_CANARY
        job = told.jobs[JOB] = Job(JOB, "python -m factory.training", status="RUNNING")
        cluster = a_cluster(
            api_server=f"https://127.0.0.1:{told.port}",
            ca={"file": str(folder / "ca.crt")},
            token={"file": str(folder / "token")},
        )
        api = connect(cluster, patience=PATIENCE)
        client = Dashboard(api, cluster, RAY_CLUSTER, RAY_CANARY, PATIENCE)
        yield Proxied(told, job, client, api, folder)
        api.close()
