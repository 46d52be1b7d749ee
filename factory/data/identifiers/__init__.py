"""Residual identifiers in a private delivery: a scan that counts and points, and never quotes.

`text` reads text, `dicom` reads headers, `files` a delivered folder, `statement` what the partner
signed for it, `report` says what was found and whether it blocks. Pixels are not read.

Nothing heavy is imported here: Presidio and pydicom are, when the first text or header is read.
"""

from factory.data.identifiers.dicom import scan_dicom as scan_dicom
from factory.data.identifiers.files import scan_files as scan_files
from factory.data.identifiers.kinds import Finding as Finding
from factory.data.identifiers.kinds import HeaderFinding as HeaderFinding
from factory.data.identifiers.kinds import Kind as Kind
from factory.data.identifiers.report import Position as Position
from factory.data.identifiers.report import ScanReport as ScanReport
from factory.data.identifiers.report import Thresholds as Thresholds
from factory.data.identifiers.statement import Statement as Statement
from factory.data.identifiers.statement import read_statement as read_statement
from factory.data.identifiers.text import scan_text as scan_text
from factory.data.identifiers.verify import verify_files as verify_files
