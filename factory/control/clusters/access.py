"""How a cluster's API server and the dashboard of a run are reached. Never a secret itself."""

import re
import ssl
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from factory.control.clusters import addresses
from factory.control.clusters.common import Part
from factory.control.clusters.words import (
    AbsolutePath,
    Argument,
    DnsLabel,
    ObjectName,
    ProgramVariables,
)

IN_CLUSTER = "https://kubernetes.default.svc"
"""Where a pod finds the API server of its own cluster."""

PLACEHOLDERS = frozenset({"namespace", "cluster", "service"})
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_LITERAL = (
    "holds a token itself, and this file is committed. Revoke it, put a new one elsewhere, and "
    "write where it is read from: {file: PATH}, {exec: {command: [...]}}, {secret: {name: ...}} or "
    "{in_cluster: true}"
)


class Authority(Part, frozen=True):
    """The certificate that the API server is checked against."""

    file: AbsolutePath | None = Field(default=None, description="A PEM file.")
    inline: str | None = Field(default=None, description="The PEM text: a certificate is public.")

    @field_validator("inline")
    @classmethod
    def _is_a_certificate(cls, text: str | None) -> str | None:
        if text is not None and "-----BEGIN CERTIFICATE-----" not in text:
            raise ValueError("is no PEM certificate: it begins with -----BEGIN CERTIFICATE-----")
        if text is not None and not _can_be_loaded(text):
            raise ValueError(
                "is a PEM certificate whose inside is none: it was cut or changed. Copy it again, "
                "from -----BEGIN to END CERTIFICATE-----"
            )
        return text

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.file is None) == (self.inline is None):
            raise ValueError("write one of {file: PATH} and {inline: PEM}")
        return self


class Exec(Part, frozen=True):
    """A program that prints a token, or an ExecCredential of `client.authentication.k8s.io`."""

    command: list[Argument] = Field(min_length=1, description="The program and its arguments.")
    environment: ProgramVariables = Field(
        default_factory=dict[str, str], description="Its variables, beside those of the factory."
    )

    @field_validator("command")
    @classmethod
    def _names_a_program(cls, command: list[str]) -> list[str]:
        if not command[0].strip():
            raise ValueError("names no program: write [PROGRAM, ARGUMENT, ...]")
        return command


class SecretKey(Part, frozen=True):
    """An entry of a Secret in the factory's own Kubernetes namespace."""

    name: ObjectName = Field(description="The Secret.")
    key: str = Field(default="token", pattern=r"^[-._a-zA-Z0-9]+$", description="The entry.")


class Token(Part, frozen=True):
    """Where the factory's token for the API server is read from."""

    file: AbsolutePath | None = Field(
        default=None, description="A file, read again when it changes."
    )
    exec: Exec | None = Field(default=None, description="A program, run again when it expires.")
    in_cluster: Literal[True] | None = Field(
        default=None, description="The token of the pod that the factory runs in."
    )
    secret: SecretKey | None = Field(default=None, description="A Secret beside the factory.")

    @model_validator(mode="before")
    @classmethod
    def _is_no_token(cls, given: Any) -> Any:
        if isinstance(given, str) or (isinstance(given, dict) and {"value", "token"} & {*given}):
            raise ValueError(_LITERAL)
        return given

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (
            len(self.model_fields_set - {n for n in self.model_fields_set if not getattr(self, n)})
            != 1
        ):
            raise ValueError("write exactly one of file, exec, in_cluster and secret")
        return self


class Dashboard(Part, frozen=True):
    """How the dashboard of a run's Ray cluster is reached."""

    route: Literal["service_proxy", "template"] = Field(
        default="service_proxy", description="Through the API server, or at an address."
    )
    template: str | None = Field(
        default=None,
        description="The address, with {namespace}, {cluster} (of Ray) and {service} in it: "
        "`http://{service}.{namespace}.svc.cluster.local:8265`.",
    )

    @model_validator(mode="after")
    def _has_its_address(self) -> Self:
        if (self.route == "template") != (self.template is not None):
            raise ValueError("write {route: template, template: ADDRESS}, or leave both out")
        return self

    @field_validator("template")
    @classmethod
    def _is_an_address(cls, template: str | None) -> str | None:
        if template is None:
            return None
        named = set(_PLACEHOLDER.findall(template))
        address = _PLACEHOLDER.sub("a", template)
        parts = addresses.parted(address)
        if (
            parts.scheme not in ("http", "https")
            or set("{}") & set(address)
            or named - PLACEHOLDERS
        ):
            raise ValueError(
                "is no address: http:// or https://, with no placeholders but "
                + ", ".join(f"{{{name}}}" for name in sorted(PLACEHOLDERS))
            )
        if not named & {"cluster", "service"}:
            raise ValueError("names every run's dashboard alike; put {cluster} or {service} in it")
        addresses.check(parts)
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError("write host, port and path only: each run has a Ray token of its own")
        return template

    def address(self, api_server: str, namespace: DnsLabel, ray_cluster: str) -> str:
        """Where the dashboard of that Ray cluster answers."""
        service = f"{ray_cluster}-head-svc"
        if self.template is not None:
            return self.template.format(namespace=namespace, cluster=ray_cluster, service=service)
        path = f"namespaces/{namespace}/services/http:{service}:dashboard/proxy"
        return f"{api_server}/api/v1/{path}"


def checked_api_server(address: str) -> str:
    """The address of an API server, as it is put before a path.

    Raises:
        ValueError: it is not https, holds more than a host, a port and a path, or they cannot be.
    """
    parts = addresses.parted(address)
    if parts.scheme != "https" or not parts.hostname:
        raise ValueError("write https://HOST:PORT: the token goes to it with every request")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("write host, port and path only; how to log in is what `token` says")
    addresses.check(parts)
    return address.rstrip("/")


def _can_be_loaded(text: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, TypeError, ValueError):
        return False
    return True
