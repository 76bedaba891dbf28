"""`yard doctor`: one sentence for each thing that could be wrong."""

from __future__ import annotations

from dataclasses import asdict

import click

from gpuyard.cli.failures import FAILED
from gpuyard.cli.output import print_json, printable
from gpuyard.cli.phrases import say
from gpuyard.cli.shared import output_option


@click.command(help=say("doctor"))
@output_option
def doctor(output: str) -> int:
    from gpuyard.cli.checks import examine

    findings = examine()
    if output == "json":
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            click.echo(f"{finding.mark} {printable(finding.sentence)}")
    return FAILED if any(finding.mark == "✗" for finding in findings) else 0


COMMANDS = (doctor,)
