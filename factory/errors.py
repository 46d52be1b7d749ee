"""Every error that the factory raises on purpose.

An error names the value, says what follows from it and what to do::

    FactoryError
    |-- KeyFormatError          a key that no asset and no directory can have
    |-- ClassificationError     private data would reach a public path
    |-- DeclarationError        a file in `definitions/` that cannot be used; stops loading
    |-- SettingsError           the environment names something that is not there
    |-- NamespaceError          the namespace refuses: missing, read-only, locked, unknown version
    |   |-- DamagedVersion      files differ from the manifest
    |   |-- ChecksNotPassed     a version would become current without its blocking checks
    |   `-- Superseded          an attempt of a run writes although it does not hold the run
    |-- SourceError             source data cannot be fetched, or is not what was declared
    |   |-- DeliveryRefused     a partner's delivery is not what its statement says
    |   `-- ScanFailed          a text could not be read for identifiers, so it counts as unread
    |-- BadRow                  a row cannot become a sample; rejected, and the step goes on
    |-- BadFile                 a source file cannot be parsed; named, with its position
    |-- StepError               a dataset step cannot finish with what it was given
    |   `-- StepInterrupted     a worker of it died; what is finished is kept
    |-- SpecError               a run spec that cannot be run: unknown name, field or value
    |   `-- ResumeRefused       a run would go on with other data than it began with
    |-- GateRefused             a run's datasets do not hold what a run needs
    |-- ClusterError            a Kubernetes cluster cannot be asked: its token, its certificate
    |   |-- ClusterOutOfReach   it does not answer now, after all retries; it may do so later
    |   `-- ClusterRefused      it answered, and the answer is no
    `-- RunFailed               a training run ended without success
"""


class FactoryError(Exception):
    """Root of the tree: what a person can act on. Anything else is a defect of ours."""

    outside: str = ""
    """What of it people may read who may not read private data: counts, no texts, no names."""


class KeyFormatError(FactoryError, ValueError):
    """A key that no asset and no directory can have."""


class ClassificationError(FactoryError):
    """Private data would reach a public path, or a private output is not declared as such."""


class DeclarationError(FactoryError):
    """A declaration under `definitions/` that cannot be used. The code location does not load."""


class SettingsError(FactoryError):
    """The environment names something that is not there."""


class NamespaceError(FactoryError):
    """The namespace refuses: root missing or read-only, key locked, version unknown."""


class DamagedVersion(NamespaceError):
    """Files on disk differ from the manifest of their version."""


class ChecksNotPassed(NamespaceError):
    """A version would become current although a blocking check has not passed for it."""


class Superseded(NamespaceError):
    """An attempt of a run would write although another driver holds the run."""


class SourceError(FactoryError):
    """Source data cannot be fetched, or is not what was declared."""


class DeliveryRefused(SourceError):
    """A partner's delivery is incomplete, unsigned or not what its statement says."""


class ScanFailed(SourceError):
    """A text or header could not be read for identifiers; whatever it holds counts as unread."""


class BadRow(FactoryError):
    """A row that cannot become a sample. It is rejected for exactly this reason, and counted.

    Reasons are counted and shown, so they are few and constant, and hold nothing of the row.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class BadFile(FactoryError):
    """A source file cannot be parsed."""


class StepError(FactoryError):
    """A dataset step cannot finish with what it was given."""


class StepInterrupted(StepError):
    """A worker of a dataset step died. What is finished is kept, and the next attempt goes on."""


class SpecError(FactoryError):
    """A run spec that cannot be run: an unknown name, field or value."""


class ResumeRefused(SpecError):
    """A run would go on from a checkpoint whose data it would not continue exactly."""


class GateRefused(FactoryError):
    """The dataset versions of a run do not hold what a run needs."""


class ClusterError(FactoryError):
    """A Kubernetes cluster cannot be asked, and will not be until somebody does something."""


class ClusterOutOfReach(ClusterError):
    """A Kubernetes cluster does not answer, after all retries. Nothing is known of its objects."""


class ClusterRefused(ClusterError):
    """A Kubernetes cluster answered a request with no."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status
        """The HTTP status: 404 for what is not there, 409 for what is there already."""


class RunFailed(FactoryError):
    """A training run ended without success."""


def is_interruption(error: BaseException) -> bool:
    """Whether an error was raised to end the work from outside: by Ctrl-C, or Dagster's cancel.

    Those say nothing. Code that is called can raise errors of the same base that do, and quote
    what it was given: a panic of a package in Rust, `sys.exit("text")`.
    """
    return not isinstance(error, Exception | SystemExit | GeneratorExit) and not error.args
