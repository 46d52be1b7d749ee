"""What a declaration under `definitions/` imports, and nothing that is heavy.

`dataset` has the declaration, `sources` where files come from, `row` and `sample` what `clean`
takes and returns, `dedup_policy` what a duplicate is, `loss` what a model learns of a sample,
`checks` what can be demanded of a version. `steps` turns a declaration into work; it is not
re-exported because running a step needs Arrow and Energon.
"""

from factory.data import checks as checks
from factory.data.checks import Check as Check
from factory.data.checks import CheckResult as CheckResult
from factory.data.dataset import Dataset as Dataset
from factory.data.dedup_policy import Dedup as Dedup
from factory.data.identifiers.kinds import Kind as Kind
from factory.data.identifiers.report import Thresholds as Thresholds
from factory.data.images import Image as Image
from factory.data.images import Images as Images
from factory.data.loss import Loss as Loss
from factory.data.pattern import Rows as Rows
from factory.data.row import Row as Row
from factory.data.sample import Rejected as Rejected
from factory.data.sample import Sample as Sample
from factory.data.sources import Derived as Derived
from factory.data.sources import Git as Git
from factory.data.sources import Http as Http
from factory.data.sources import HuggingFace as HuggingFace
from factory.data.sources import LocalFiles as LocalFiles
from factory.data.sources import PartnerDrop as PartnerDrop
from factory.data.sources import PythonPackage as PythonPackage
from factory.data.stores import S3 as S3
from factory.data.stores import Fsspec as Fsspec
