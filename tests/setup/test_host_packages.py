"""`.ci/host-packages` installs what is missing where it may, else prints the command."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from host import packages
from kernels.build.build import BUILD_TOOLS
from tests.setup.conftest import ROOT, FakeMachine

SCRIPT = ROOT / ".ci/host-packages"

# What `setup` probes for, and the packages of each manager.
SETUP = [
    line.split()[1:]
    for line in packages.TABLE.read_text().splitlines()
    if line.startswith("setup ")
]
COLUMN = {manager: number for number, manager in enumerate(packages.MANAGERS, 1)}
APT = "sudo apt-get update && sudo apt-get install --no-install-recommends"


def furnish(
    machine: FakeMachine, manager: str = "apt-get", *, without: tuple[str, ...] = ()
) -> None:
    """Install everything that uevt needs, and a package manager."""
    for probe, *_ in SETUP:
        kind, _, name = probe.partition(":")
        if name in without or kind == "module":
            continue
        if kind == "command":
            machine.stub(name)
        else:
            machine.header(name)
    machine.stub(manager)


@pytest.mark.parametrize("manager", packages.MANAGERS)
@pytest.mark.parametrize("uid", [0, 1000])
def test_complete_host_is_left_alone(machine: FakeMachine, manager: str, uid: int) -> None:
    machine.user(uid)
    furnish(machine, manager)
    assert machine.run(SCRIPT) == ("", "")
    assert machine.calls == []


@pytest.mark.parametrize(
    ("manager", "command"),
    [
        ("apt-get", f"{APT} gcc libelf-dev xz-utils qemu-system-x86"),
        ("dnf", "sudo dnf install gcc elfutils-libelf-devel xz qemu-system-x86-core"),
        ("zypper", "sudo zypper install gcc libelf-devel xz qemu-x86"),
        ("pacman", "sudo pacman -S --needed gcc libelf xz qemu-system-x86"),
    ],
)
def test_command_is_printed_without_root(machine: FakeMachine, manager: str, command: str) -> None:
    furnish(machine, manager, without=("gcc", "gelf.h", "xz", "qemu-system-x86_64"))
    machine.stub("sudo", "exit 1", logged=False)  # wants a password
    answer = machine.run(SCRIPT, code=3)
    assert answer.err.splitlines() == [
        "setup: host packages are missing; install them with",
        f"    {command}",
    ]
    assert machine.calls == []


@pytest.mark.parametrize("manager", packages.MANAGERS)
def test_bare_host_gets_all_packages_at_once(machine: FakeMachine, manager: str) -> None:
    machine.stub(manager)
    answer = machine.run(SCRIPT, code=3)
    names = [row[COLUMN[manager]] for row in SETUP if not row[0].startswith("module:")]
    assert answer.err.endswith(f" {' '.join(names)}\n")


def test_unknown_package_manager_gets_the_names_of_debian(machine: FakeMachine) -> None:
    furnish(machine, "emerge", without=("gelf.h",))
    answer = machine.run(SCRIPT, code=3)
    assert answer.err == "setup: host packages are missing (Debian's names): libelf-dev\n"


@pytest.mark.parametrize(
    ("manager", "command"),
    [("dnf", "dnf install"), ("zypper", "zypper install"), ("pacman", "pacman -S --needed")],
)
def test_root_runs_no_manager_but_apt(machine: FakeMachine, manager: str, command: str) -> None:
    machine.user(0)
    furnish(machine, manager, without=("bc",))
    answer = machine.run(SCRIPT, code=3)
    assert answer.err.splitlines()[-1] == f"    {command} bc"
    assert machine.calls == []


def working_apt(machine: FakeMachine) -> None:
    """An apt-get that installs file(1) and bc."""
    stubs = " ".join(str(machine.bin / name) for name in ("file", "bc"))
    machine.stub(
        "apt-get",
        f"""case " $* " in
    *' install '*)
        for stub in {stubs}; do echo '#!/bin/sh' >$stub; /bin/chmod +x $stub; done ;;
esac""",
    )


def test_root_installs_only_what_is_missing_and_only_once(machine: FakeMachine) -> None:
    machine.user(0)
    furnish(machine, without=("bc", "file"))
    working_apt(machine)
    assert machine.run(SCRIPT).err == "setup: installing host packages: bc file\n"
    update, install = machine.calls
    assert update.split()[-1] == "update"
    assert install.endswith(" install --no-install-recommends bc file")

    machine.run(SCRIPT)
    assert len(machine.calls) == 2, "apt-get ran again"


def test_passwordless_sudo_installs_too(machine: FakeMachine) -> None:
    furnish(machine, without=("bc", "file"))
    working_apt(machine)
    machine.stub("sudo", 'shift\nexec "$@"')
    machine.run(SCRIPT)
    assert next(call for call in machine.calls if call.startswith("sudo")) == "sudo -n true"
    assert len([call for call in machine.calls if call.startswith("apt-get")]) == 2


@pytest.mark.parametrize("failing", ["update", "install"])
def test_failing_apt_is_an_error_of_the_host(machine: FakeMachine, failing: str) -> None:
    machine.user(0)
    furnish(machine, without=("bc",))
    machine.stub("apt-get", f"case \" $* \" in *' {failing} '*) echo 'E: no' >&2; exit 100 ;; esac")
    answer = machine.run(SCRIPT, code=3)
    assert answer.err.splitlines()[1:] == [
        "E: no",
        "setup: apt-get failed; fix the error above, then run this again",
    ]


def test_apt_that_installs_nothing_is_an_error(machine: FakeMachine) -> None:
    machine.user(0)
    furnish(machine, without=("bc",))
    assert machine.run(SCRIPT, code=3).err.endswith("still missing from the search path: bc\n")


def test_python_without_venv_needs_a_package(machine: FakeMachine) -> None:
    furnish(machine)
    machine.stub(
        "python3",
        f'case $* in *ensurepip*) exit 1 ;; esac\nexec {sys.executable} "$@"',
        logged=False,
    )
    assert machine.run(SCRIPT, code=3).err.endswith(" --no-install-recommends python3-venv\n")


def test_unknown_kind_of_probe_is_an_error(tmp_path: Path, machine: FakeMachine) -> None:
    script = tmp_path / ".ci/host-packages"
    table = tmp_path / "host/packages.txt"
    for file, text in ((script, SCRIPT.read_text()), (table, "setup programme:gcc a b c d\n")):
        file.parent.mkdir()
        file.write_text(text)
    script.chmod(0o755)
    answer = machine.run(script, code=1)
    assert "unknown kind of probe: programme:gcc" in answer.err


def test_setup_installs_what_a_build_needs() -> None:
    installed = {row[0].partition(":")[2] for row in SETUP}
    # util-linux, which every Debian has, includes setpriv.
    assert {*BUILD_TOOLS} - {"setpriv"} <= installed


def test_browser_is_installed_on_request_only(machine: FakeMachine) -> None:
    furnish(machine)
    machine.run(SCRIPT)
    answer = machine.run(SCRIPT, "browser", code=3)
    assert answer.err.endswith(" --no-install-recommends chromium\n")
    machine.stub("chromium")
    machine.run(SCRIPT, "browser")
    assert machine.calls == []
