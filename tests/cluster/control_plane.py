"""A Kubernetes without nodes: etcd, API server, controllers, scheduler and the KubeRay operator.

`running` starts one and always stops it. What a killed harness left is ended by the next start:
every process of a cluster carries the name of its session, and a session names its owner. Nodes are
in `nodes` and `kubelets`, who may do what is in `access`.
"""

import contextlib
import http.client
import json
import secrets
import signal
import threading
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa

from factory.control.processes import Process, end_all
from factory.control.sessions import Session, Sessions
from tests.cluster import builds, leftovers
from tests.cluster.api import Api, eventually
from tests.cluster.certificates import write_server_identity, write_signing_key
from tests.cluster.claims import Claims, claims
from tests.cluster.daemons import Daemon, DaemonDied

HOST = "127.0.0.1"
CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "disruption-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "pod-garbage-collector-controller",
    "resourceclaim-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "taint-eviction-controller",
    "ttl-after-finished-controller",
)
PATIENCE_WITHOUT_KUBELETS = "24h"
"""Nobody renews the lease of a node without a kubelet, and it is ready until a test says not."""
PATIENCE_WITH_KUBELETS = "40s"

_YAML = "application/yaml"


class Clusters(Sessions):
    """The clusters that harnesses of this user started."""

    def __init__(self) -> None:
        super().__init__(builds.cache() / "clusters")

    def close(self, session: Session) -> list[Process]:
        """End everything of a cluster, also what containers leave outside of its directory.

        Raises:
            RuntimeError: something stays mounted in its directory, so that was not removed.
        """
        end_all(session.id, session.directory)
        leftovers.clear(session.directory)
        return super().close(session)


@contextlib.contextmanager
def running(
    name: str, nodes: Sequence[str] = (), server_flags: Sequence[str] = ()
) -> Generator["ControlPlane"]:
    """A cluster of that name, which knows kubelets of those names; nothing is left afterwards.

    `server_flags` are given to the API server beside its own.

    Raises:
        NoGo: a program has to be built, and there is no Go.
        DaemonDied: a part did not start.
        RuntimeError: something of it could not be ended.
    """
    registry = Clusters()
    registry.sweep()
    session = registry.open(name)
    try:
        with _interrupted_when_told_to_end(), claims(builds.cache() / "claims") as held:
            plane = ControlPlane(name, session, held, nodes, server_flags)
            try:
                plane.start()
                yield plane
            finally:
                plane.kill()
    finally:
        if left := registry.close(session):
            raise RuntimeError(f"Of cluster {name} these go on: {', '.join(map(str, left))}")


@dataclass
class ControlPlane:
    """One cluster: its address, its authority, its administrator and its programs."""

    name: str
    session: Session
    claims: Claims
    nodes: Sequence[str] = ()
    server_flags: Sequence[str] = ()
    daemons: dict[str, Daemon] = field(default_factory=dict[str, Daemon])

    def __post_init__(self) -> None:
        self.issuer = f"https://{self.name}.test"
        port = self.claims.port()
        self.address = f"https://{HOST}:{port}"
        self.ca = self.folder / "ca.crt"
        self.admin = self._as(secrets.token_hex(16))
        self.kubeconfig = self.folder / "kubeconfig"
        self.kubelets = {name: self._as(secrets.token_hex(16)) for name in self.nodes}
        self.signing_key: rsa.RSAPrivateKey = write_signing_key(self.folder / "accounts.key")

    @property
    def folder(self) -> Path:
        """Everything of this cluster: certificates, data, logs."""
        return self.session.directory

    @property
    def server(self) -> Daemon:
        """The API server."""
        return self.daemons["kube-apiserver"]

    @property
    def operator(self) -> Daemon:
        """The KubeRay operator."""
        return self.daemons["ray-operator"]

    def start(self) -> None:
        """Start every program and wait until all of them answer.

        Raises:
            NoGo: as `running`.
            DaemonDied: as `running`.
        """
        hosts = [HOST, "localhost", "kubernetes.default.svc", "10.96.0.1"]
        write_server_identity(self.folder, self.name, hosts)
        self._write_access()
        etcd = self._start_etcd()
        self._start_server(etcd)
        self._start_controllers()
        self._start_scheduler()
        self._start_operator()

    def run(
        self, program: str | Path, *arguments: str, name: str = "", **environment: str
    ) -> Daemon:
        """Start one more program of this cluster, one of ours or any other.

        Raises:
            NoGo: it is one of ours and has to be built.
        """
        path = program if isinstance(program, Path) else builds.program(program)
        known_as = name or path.name
        log = self.folder / f"{known_as}.log"
        daemon = Daemon(known_as, [str(path), *arguments], log, self.session.id, environment)
        self.daemons[known_as] = daemon
        daemon.start()
        return daemon

    def kill(self) -> None:
        """End every program at once, the last one started first."""
        for daemon in reversed(self.daemons.values()):
            daemon.kill()

    def wait_until_ready(self) -> None:
        """Wait for an API server that was started again.

        Raises:
            DaemonDied: it ended, or took too long.
        """
        self.server.wait_until(self.admin.ready)

    def _as(self, token: str) -> Api:
        return Api(self.address, self.ca, token)

    def _write_access(self) -> None:
        """Tokens of the administrator, for all who work for the server, and of the kubelets."""
        lines = [f'{self.admin.token},admin,admin,"system:masters"']
        for name, api in self.kubelets.items():
            lines.append(f'{api.token},system:node:{name},{name},"system:nodes"')
        tokens = self.folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text("\n".join(lines) + "\n", encoding="utf-8")
        write_kubeconfig(self.kubeconfig, self.name, self.admin)

    def _start_etcd(self) -> str:
        client, peer = (f"http://{HOST}:{self.claims.port()}" for _ in range(2))
        self.run(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",  # a test's data need not survive a power cut
            "--log-level=warn",
        )
        return client

    def _start_server(self, etcd: str) -> None:
        signing = self.folder / "accounts.key"
        port = self.address.rpartition(":")[2]
        self.run(
            "kube-apiserver",
            f"--etcd-servers={etcd}",
            f"--bind-address={HOST}",
            f"--advertise-address={HOST}",
            f"--secure-port={port}",
            "--endpoint-reconciler-type=none",  # the loopback address is no endpoint of a service
            f"--tls-cert-file={self.folder / 'server.crt'}",
            f"--tls-private-key-file={self.folder / 'server.key'}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            f"--service-account-issuer={self.issuer}",
            f"--service-account-key-file={signing}",
            f"--service-account-signing-key-file={signing}",
            "--authorization-mode=Node,RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--allow-privileged=true",
            "--kubelet-preferred-address-types=InternalIP",  # a node has no name in any DNS
            *self.server_flags,
        )
        self.wait_until_ready()

    def _start_controllers(self) -> None:
        patience = PATIENCE_WITH_KUBELETS if self.nodes else PATIENCE_WITHOUT_KUBELETS
        daemon = self.run(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig}",
            f"--controllers={','.join(CONTROLLERS)}",
            f"--root-ca-file={self.ca}",
            f"--service-account-private-key-file={self.folder / 'accounts.key'}",
            f"--node-monitor-grace-period={patience}",
            "--leader-elect=false",
            "--secure-port=0",
        )
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        daemon.wait_until(lambda: self.admin.exists(account))

    def _start_scheduler(self) -> None:
        self.run(
            "kube-scheduler",
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
        )

    def _start_operator(self) -> None:
        self.install_crds(builds.crds())
        probe = self.claims.port()
        daemon = self.run(
            "ray-operator",
            "--enable-leader-election=false",
            "--use-kubernetes-proxy",  # the operator stands outside the network of the pods
            "--metrics-addr=0",
            f"--health-probe-bind-address={HOST}:{probe}",
            KUBECONFIG=str(self.kubeconfig),
            ENABLE_PROBES_INJECTION="false",  # they kill a head that is slow to start
        )
        daemon.wait_until(lambda: says_it_is_ready(probe))

    def install_crds(self, files: Sequence[Path]) -> None:
        """Make the resources that the files define, and wait until they are served.

        Raises:
            Refused: the server did not take one.
            DaemonDied: it does not serve one.
        """
        kind = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        made = [self.admin.create(kind, path.read_bytes(), _YAML) for path in files]
        for one in made:
            group, version = one["spec"]["group"], one["spec"]["versions"][0]["name"]
            plural = one["spec"]["names"]["plural"]
            path = f"/apis/{group}/{version}/{plural}"
            if not eventually(lambda path=path: self.admin.ask("GET", path).ok):
                raise DaemonDied(f"The API server does not serve {path}")


@contextlib.contextmanager
def _interrupted_when_told_to_end() -> Generator[None]:
    """SIGTERM, as a cancelled job of CI gets it, stops the cluster as an interrupt does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def says_it_is_ready(port: int, path: str = "/readyz") -> bool:
    """Whether a program says so where it was told to be asked."""
    link = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        link.request("GET", path)
        return link.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        link.close()


def write_kubeconfig(path: Path, name: str, api: Api) -> None:
    """Write what `kubectl` and the programs of a cluster read; JSON is YAML too."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [
            {
                "name": name,
                "cluster": {"server": api.address, "certificate-authority": str(api.ca)},
            }
        ],
        "users": [{"name": name, "user": {"token": api.token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=2), encoding="utf-8")
