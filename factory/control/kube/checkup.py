"""`factory cluster check` of a Kubernetes cluster, the part that asks. It changes nothing there.

What follows from the answers is in `check_lines`. A token that may do no more than the factory
needs sees neither nodes nor queues: what it may not see is left open, not taken as missing.
"""

import re
import socket
import ssl
import urllib.parse
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from factory.control.checklist import Line, failed
from factory.control.clusters import Kubernetes
from factory.control.kube.api import SOMEBODY_WAITS, Api, connect
from factory.control.kube.check_lines import Facts, Looked, Unseen, lines
from factory.control.kube.credentials import expiry
from factory.control.kube.fields import mapping, name, objects, text
from factory.control.kube.rights import Right, needed
from factory.errors import ClusterError, ClusterRefused

_KAI = "scheduling.run.ai"
_NOT_FOUND, _UNAUTHORIZED = 404, 401
_RELEASE = re.compile(r":v?([0-9]+\.[0-9]+\.[0-9]+[-.0-9A-Za-z]*)$")


def checkup(
    cluster: Kubernetes, image: str | None, connected: Callable[[Kubernetes], Api] | None = None
) -> list[Line]:
    """The lines of the table. What cannot be asked ends it, as the line that failed."""
    what = "access"
    try:
        api = connected(cluster) if connected else connect(cluster, patience=SOMEBODY_WAITS)
        what = "token"
        token = api.token()
        what = "address"
        version = text(api.get("/version"), "gitVersion")
        what = "token"
        user = _user(api)
    except ClusterError as error:
        if isinstance(error, ClusterRefused) and error.status == _UNAUTHORIZED:
            what = "token"
        return [
            failed(what, "no usable answer" if what == "address" else "cannot be used", str(error))
        ]
    try:
        facts = Facts(
            cluster=cluster,
            image=image,
            now=datetime.now(UTC),
            version=version,
            certificate_ends=_certificate_ends(api),
            user=user,
            token_ends=expiry(token),
            missing=_missing(api, cluster),
            may_everything=_may(api, "", Right("*", "*", ("*",)), "*"),
            served=_served(api),
            rayjob=_schema(api, "ray.io/v1", "RayJob"),
            podgroup=_schema(api, f"{_KAI}/v2alpha2", "PodGroup"),
            operator=_operator(api),
            queues=_queues(api, cluster),
            nodes=_nodes(api, cluster),
            claims=_claims(api, cluster),
        )
    except ClusterError as error:
        return [failed("address", "stopped answering", str(error))]
    finally:
        api.close()
    return lines(facts)


def _user(api: Api) -> str:
    kind = "authentication.k8s.io/v1"
    review = {"apiVersion": kind, "kind": "SelfSubjectReview"}
    try:
        found = api.create(f"/apis/{kind}/selfsubjectreviews", review)
    except ClusterRefused as refused:
        if refused.status != _NOT_FOUND:  # before Kubernetes 1.28
            raise
        return "unknown"
    return text(found, "status", "userInfo", "username")


def _certificate_ends(api: Api) -> datetime | None:
    """Of the server itself; unknown where it is reached through a proxy."""
    where = urllib.parse.urlsplit(api.address)
    try:
        host, port = where.hostname or "", where.port or 443
        with (
            socket.create_connection((host, port), SOMEBODY_WAITS.connect_seconds) as plain,
            api.tls().wrap_socket(plain, server_hostname=host) as link,
        ):
            ends = mapping(link.getpeercert()).get("notAfter")
        return datetime.fromtimestamp(ssl.cert_time_to_seconds(str(ends)), UTC) if ends else None
    except (OSError, ValueError):
        return None


def _missing(api: Api, cluster: Kubernetes) -> dict[Right, list[str]]:
    """The verbs that the token lacks, for each right that is needed."""
    return {
        right: [verb for verb in right.verbs if not _may(api, cluster.namespace, right, verb)]
        for right in needed(cluster)
    }


def _may(api: Api, namespace: str, right: Right, verb: str) -> bool:
    resource, _, part = right.resource.partition("/")
    asked = {"group": right.group, "resource": resource, "subresource": part, "verb": verb}
    kind = "authorization.k8s.io/v1"
    review = {
        "apiVersion": kind,
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"namespace": namespace, **asked}},
    }
    found = api.create(f"/apis/{kind}/selfsubjectaccessreviews", review)
    return mapping(found, "status").get("allowed") is True


def _served(api: Api) -> frozenset[str]:
    """Resources of the groups that matter, as `ray.io/v1/rayjobs`."""
    groups = ("ray.io/v1", f"{_KAI}/v2", f"{_KAI}/v2alpha2", "kai.scheduler/v1alpha1")
    found: set[str] = set()
    for group in groups:
        listed = _look(api, f"/apis/{group}")
        if not isinstance(listed, Unseen):
            found |= {f"{group}/{text(one, 'name')}" for one in objects(listed, "resources")}
    return frozenset(found)


def _schema(api: Api, group: str, kind: str) -> Looked:
    """The schema of a custom resource: anybody may see it, and it tells versions apart."""
    document = _look(api, f"/openapi/v3/apis/{group}")
    if isinstance(document, Unseen):
        return document
    for title, schema in mapping(document, "components", "schemas").items():
        if title.rpartition(".")[2] == kind:
            return mapping(schema)
    return Unseen("the server does not publish it")


def _operator(api: Api) -> str:
    """The version of KubeRay's operator, from its image; empty where it may not be seen."""
    found = _look(
        api, "/apis/apps/v1/deployments", labelSelector="app.kubernetes.io/name=kuberay-operator"
    )
    if isinstance(found, Unseen):
        return ""
    images = [
        text(container, "image")
        for one in objects(found, "items")
        for container in objects(one, "spec", "template", "spec", "containers")
    ]
    found_in = (_RELEASE.search(image.partition("@")[0]) for image in images)
    return next((release[1] for release in found_in if release), "")


def _queues(api: Api, cluster: Kubernetes) -> dict[str, Looked]:
    if cluster.scheduler != "kai":
        return {}
    names = {queue.name for queue in cluster.queues.values()}
    return {one: _look(api, f"/apis/{_KAI}/v2/queues/{one}") for one in sorted(names)}


def _nodes(api: Api, cluster: Kubernetes) -> list[Any] | Unseen:
    nodes = cluster.nodes
    labels = dict(nodes.labels)
    if nodes.gpu_product:
        labels["nvidia.com/gpu.product"] = nodes.gpu_product
    chosen = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    found = _look(api, "/api/v1/nodes", **({"labelSelector": chosen} if chosen else {}))
    return found if isinstance(found, Unseen) else sorted(objects(found, "items"), key=name)


def _claims(api: Api, cluster: Kubernetes) -> dict[str, Looked]:
    volumes = (cluster.tree.public, cluster.tree.private, *cluster.mounts)
    names = {one.claim for one in volumes if one is not None and one.claim}
    where = f"/api/v1/namespaces/{cluster.namespace}/persistentvolumeclaims"
    return {one: _look(api, f"{where}/{one}") for one in sorted(names)}


def _look(api: Api, path: str, **query: str) -> Looked:
    try:
        return api.get(path, **query)
    except ClusterRefused as refused:
        return Unseen(str(refused), missing=refused.status == _NOT_FOUND)
