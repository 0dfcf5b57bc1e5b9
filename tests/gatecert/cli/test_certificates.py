"""Claims about certificates that are read back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gatecert.cli.certificates import read_certificate
from gatecert.errors import UsageError


def test_of_a_report_the_certificate_beside_it_is_suggested(tmp_path: Path) -> None:
    report, certificate = tmp_path / "report-r2.md", tmp_path / "certificate-r2.json"
    report.write_text("# Certificate of gate tests\n")
    said = f"{report}: not a certificate: it is no JSON"
    with pytest.raises(UsageError, match=re.escape(said) + "$"):
        read_certificate(report)
    certificate.write_text("{}")
    with pytest.raises(UsageError, match=re.escape(f"{said}; did you mean {certificate}?")):
        read_certificate(report)
