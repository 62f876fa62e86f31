"""The command line: the only place that prints, exits and chooses concrete parts."""

from __future__ import annotations

import importlib
import sys

import click

from ganbench import __version__
from ganbench.errors import GanbenchError

# name -> (module, what it does). A command's module is imported when it is called, not for `--help`.
COMMANDS = {
    "sweep": ("sweep", "Run an experiment: every ratio, strategy and seed, recorded in MLflow."),
    "check": ("check", "Look a GAN, its data and its loss over before any run."),
    "plan": ("plan", "What would run: arms, seeds, schedule."),
    "verify": ("verify", "Certify which strategies train on the gradients they claim."),
    "report": ("report", "Tables of a sweep, as Markdown and CSV."),
    "list": ("listing", "Sweeps in the store and their states."),
    "show": ("show", "One sweep or one run."),
    "ui": ("ui", "MLflow's UI on the same store."),
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"{__name__}.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f"did you mean '{near[0]}'? " if near else ""
            raise click.UsageError(f"no command '{args[0]}': {hint}known are {', '.join(COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ganbench")
def cli() -> None:
    """A benchmark harness for GAN training: which way of keeping the two autograd graphs apart is right, what it
    costs, and which ratio of updates is worth it.

    Start with `ganbench sweep quickstart`.
    """


def main() -> None:
    """Run the command line and exit: 0 as expected, 1 some run was not, 2 usage, 130 interrupted."""
    try:
        # Not standalone: click then returns the code of an Exit instead of leaving.
        sys.exit(cli.main(standalone_mode=False) or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        click.echo(f"error: {error.format_message()}", err=True)
        if isinstance(error, click.UsageError) and error.ctx is not None:
            click.echo(f"see '{error.ctx.command_path} --help'", err=True)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except GanbenchError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        # Whoever read the output has gone, such as `head`.
        sys.stderr.close()
        sys.exit(1)
