"""From a run to its certificate: pure functions, so a stored run can be judged again."""

from gatecert.certificate.build import certify
from gatecert.certificate.exits import exit_code, unmet
from gatecert.certificate.records import Certificate
from gatecert.certificate.status import status_of

__all__ = ["Certificate", "certify", "exit_code", "status_of", "unmet"]
