"""`uevt doctor`: check whether this machine can run the suite."""

from __future__ import annotations

import argparse
import sys

from conformance.cli.output import print_json
from conformance.results.exit_codes import Ending, exit_code
from conformance.session.preflight.doctor import examine


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    doctor = commands.add_parser("doctor", help="check whether this machine can run the suite")
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.set_defaults(perform=_doctor)


def _doctor(arguments: argparse.Namespace) -> int:
    findings = examine()
    if arguments.json:
        print_json([finding.to_json() for finding in findings])
    else:
        for finding in findings:
            sys.stdout.write(f"{finding}\n")
    return exit_code(Ending.PASS if all(finding.ok for finding in findings) else Ending.HOST)
