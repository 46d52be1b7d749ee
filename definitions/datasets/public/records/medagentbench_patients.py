"""MedAgentBench's patients, as a FHIR R4 server answers for them: de-identified and jittered."""

from factory.data import Dataset, Git, Row, Rows, Sample, checks, fhir
from factory.keys import public


def clean(row: Row) -> Sample:
    """The same patient is in several answers; all but one go as duplicates."""
    return fhir.document(row.record["resource"], id=row.id)


medagentbench_patients = Dataset(
    key=public("records/medagentbench_patients"),
    license="MIT",
    source=Git(
        url="https://github.com/rushilcs/MedAgentBench",
        revision="e9793e8b878ced68ab43b67a48a743eb6a2bb478",
        rows=Rows("rl_training/outputs/fhir_snapshot.jsonl", items="data.entry"),
    ),
    clean=clean,
    checks=[checks.rows(1_200, 1_212), checks.rejected("no items in the record", at_most=0.42)],
)
