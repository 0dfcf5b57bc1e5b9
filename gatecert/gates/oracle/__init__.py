"""gatecert's own gate: schema-aware inputs, fp64 reference, calibrated tolerance, guards."""

from gatecert.gates.oracle.cases import PreparedCase, in_turns, prepare_case, under_every_config
from gatecert.gates.oracle.gate import OracleGate, check_declared
from gatecert.gates.oracle.prepared import PreparedOracle

__all__ = [
    "OracleGate",
    "PreparedCase",
    "PreparedOracle",
    "check_declared",
    "in_turns",
    "prepare_case",
    "under_every_config",
]
