""".ci/host-packages: installs what is missing where it may, else says how."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kernels.catalog.entries import load_catalog
from kernels.tools.host_tools import MANAGERS, TOOLS
from tests.setup.fake_machine import ROOT, FakeMachine

SCRIPT = ROOT / ".ci/host-packages"
TABLE = ROOT / ".ci/host-packages.txt"

DEBIAN = 'ID=debian\nVERSION_ID="12"\n'
UBUNTU = 'PRETTY_NAME="Ubuntu 24.04.1 LTS"\nVERSION_CODENAME=noble\nID=ubuntu\nID_LIKE=debian\n'
MINT = 'ID=linuxmint\nID_LIKE="ubuntu debian"\n'
FEDORA = 'NAME="Fedora Linux"\nVERSION_ID=41\nID=fedora\nVARIANT_ID=server\n'
ROCKY = 'ID="rocky"\nID_LIKE="rhel centos fedora"\n'
TUMBLEWEED = 'ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n'
LEAP = 'ID="opensuse-leap"\nID_LIKE="suse opensuse"\nVERSION_ID="15.6"\n'
ARCH = 'NAME="Arch Linux"\nID=arch\nBUILD_ID=rolling\n'
MANJARO = "ID=manjaro\nID_LIKE=arch\n"
UNHEARD_OF = "ID=plan9\n"

COMMANDS = (
    *("make", "gcc", "ld", "bc", "bison", "flex", "gzip", "patch", "perl", "xz", "file"),
    "qemu-system-x86_64",
)
HEADERS = ("stdio.h", "gelf.h", "openssl/evp.h")
MANAGER_COMMANDS = ("apt-get", "dnf", "zypper", "pacman")


def furnish(machine: FakeMachine, *, without: tuple[str, ...] = ()) -> None:
    """Install everything that uevt needs, and all package managers."""
    for command in COMMANDS:
        if command not in without:
            machine.stub(command)
    for header in HEADERS:
        if header not in without:
            machine.header(header)
    for manager in MANAGER_COMMANDS:
        machine.stub(manager)


@pytest.mark.parametrize("release", [DEBIAN, FEDORA, TUMBLEWEED, ARCH, UNHEARD_OF])
@pytest.mark.parametrize("uid", [0, 1000])
def test_a_complete_host_is_left_alone(machine: FakeMachine, release: str, uid: int) -> None:
    machine.os_release(release)
    machine.user(uid)
    furnish(machine)
    answer = machine.run(SCRIPT)
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    assert machine.calls == []


@pytest.mark.parametrize(
    ("release", "command"),
    [
        *(
            (
                release,
                "sudo apt-get update && sudo apt-get install --no-install-recommends "
                "gcc libelf-dev xz-utils qemu-system-x86",
            )
            for release in (DEBIAN, UBUNTU, MINT)
        ),
        (FEDORA, "sudo dnf install gcc elfutils-libelf-devel xz qemu-system-x86-core"),
        (ROCKY, "sudo dnf install gcc elfutils-libelf-devel xz qemu-system-x86-core"),
        (TUMBLEWEED, "sudo zypper install gcc libelf-devel xz qemu-x86"),
        (LEAP, "sudo zypper install gcc libelf-devel xz qemu-x86"),
        (ARCH, "sudo pacman -S --needed gcc libelf xz qemu-system-x86"),
        (MANJARO, "sudo pacman -S --needed gcc libelf xz qemu-system-x86"),
    ],
)
def test_without_root_the_exact_command_is_printed(
    machine: FakeMachine, release: str, command: str
) -> None:
    machine.os_release(release)
    furnish(machine, without=("gcc", "gelf.h", "xz", "qemu-system-x86_64"))
    machine.stub("sudo", "exit 1", logged=False)  # wants a password
    answer = machine.run(SCRIPT)
    assert answer.code == 3
    assert answer.err.splitlines() == [
        "setup: host packages are missing; install them with",
        f"    {command}",
    ]
    assert machine.calls == []


BARE = {
    UBUNTU: (
        "sudo apt-get update && sudo apt-get install --no-install-recommends make gcc binutils"
        " libc6-dev libelf-dev libssl-dev bc bison flex gzip patch perl-base xz-utils file"
        " qemu-system-x86"
    ),
    FEDORA: (
        "sudo dnf install make gcc binutils glibc-devel elfutils-libelf-devel openssl-devel bc"
        " bison flex gzip patch perl-interpreter xz file qemu-system-x86-core"
    ),
    LEAP: (
        "sudo zypper install make gcc binutils glibc-devel libelf-devel libopenssl-devel bc bison"
        " flex gzip patch perl-base xz file qemu-x86"
    ),
    ARCH: (
        "sudo pacman -S --needed make gcc binutils glibc libelf openssl bc bison flex gzip patch"
        " perl xz file qemu-system-x86"
    ),
}


@pytest.mark.parametrize("release", BARE, ids=["ubuntu", "fedora", "leap", "arch"])
def test_a_bare_machine_is_told_everything_at_once(machine: FakeMachine, release: str) -> None:
    machine.os_release(release)
    answer = machine.run(SCRIPT)
    assert answer.code == 3
    assert answer.err.splitlines()[-1].strip() == BARE[release]


def test_a_machine_without_sudo_gets_the_same_answer(machine: FakeMachine) -> None:
    machine.os_release(DEBIAN)
    furnish(machine, without=("bc",))
    answer = machine.run(SCRIPT)
    assert answer.code == 3
    assert "sudo apt-get install --no-install-recommends bc\n" in answer.err
    assert machine.calls == []


@pytest.mark.parametrize(
    ("release", "command"),
    [
        (FEDORA, "dnf install bc"),
        (TUMBLEWEED, "zypper install bc"),
        (ARCH, "pacman -S --needed bc"),
    ],
)
def test_root_runs_only_apt_by_itself(machine: FakeMachine, release: str, command: str) -> None:
    machine.os_release(release)
    machine.user(0)
    furnish(machine, without=("bc",))
    answer = machine.run(SCRIPT)
    assert answer.code == 3
    assert answer.err.splitlines()[-1] == f"    {command}"
    assert machine.calls == []


@pytest.mark.parametrize("release", [UNHEARD_OF, None])
def test_an_unknown_distribution_gets_all_four(machine: FakeMachine, release: str | None) -> None:
    if release is not None:
        machine.os_release(release)
    furnish(machine, without=("gelf.h",))
    answer = machine.run(SCRIPT)
    assert answer.code == 3
    assert [line.strip() for line in answer.err.splitlines()[1:]] == [
        "sudo apt-get update && sudo apt-get install --no-install-recommends libelf-dev",
        "sudo dnf install elfutils-libelf-devel",
        "sudo zypper install libelf-devel",
        "sudo pacman -S --needed libelf",
    ]


def working_apt(machine: FakeMachine) -> None:
    """An apt-get that installs file(1) and bc when asked to install."""
    stubs = " ".join(str(machine.bin / name) for name in ("file", "bc"))
    machine.stub(
        "apt-get",
        f"""case " $* " in
    *' install '*)
        for stub in {stubs}; do echo '#!/bin/sh' >$stub; /bin/chmod +x $stub; done ;;
esac""",
    )


def test_root_installs_only_what_is_missing_and_only_once(machine: FakeMachine) -> None:
    machine.os_release(DEBIAN)
    machine.user(0)
    furnish(machine, without=("bc", "file"))
    working_apt(machine)
    answer = machine.run(SCRIPT)
    assert answer.code == 0
    assert answer.err == "setup: installing host packages: bc file\n"
    update, install = machine.calls
    assert update.split()[-1] == "update"
    assert install.endswith(" install --no-install-recommends bc file")

    assert machine.run(SCRIPT).code == 0
    assert len(machine.calls) == 2, "the second call asked apt"


def test_passwordless_sudo_installs_too(machine: FakeMachine) -> None:
    machine.os_release(UBUNTU)
    furnish(machine, without=("bc", "file"))
    working_apt(machine)
    machine.stub("sudo", 'shift\nexec "$@"')
    assert machine.run(SCRIPT).code == 0
    assert next(call for call in machine.calls if call.startswith("sudo")) == "sudo -n true"
    assert len([call for call in machine.calls if call.startswith("apt-get")]) == 2


@pytest.mark.parametrize("failing", ["update", "install"])
def test_a_failing_apt_is_the_hosts_trouble(machine: FakeMachine, failing: str) -> None:
    machine.os_release(DEBIAN)
    machine.user(0)
    furnish(machine, without=("bc",))
    machine.stub("apt-get", f"case \" $* \" in *' {failing} '*) echo 'E: no' >&2; exit 100 ;; esac")
    answer = machine.run(SCRIPT)
    assert answer.code == 3
    assert answer.err.splitlines()[1:] == [
        "E: no",
        "setup: apt-get failed; fix what it says above, then run this again",
    ]


def test_an_apt_that_installs_nothing_is_not_believed(machine: FakeMachine) -> None:
    machine.os_release(DEBIAN)
    machine.user(0)
    furnish(machine, without=("bc",))
    answer = machine.run(SCRIPT)
    assert answer.code == 3
    assert answer.err.endswith("still missing from the search path: bc\n")


def test_debian_python_without_venv_is_noticed(machine: FakeMachine) -> None:
    machine.os_release(DEBIAN)
    furnish(machine)
    machine.stub(
        "python3",
        f'case $* in *ensurepip*) exit 1 ;; esac\nexec {sys.executable} "$@"',
        logged=False,
    )
    answer = machine.run(SCRIPT)
    assert answer.code == 3
    assert answer.err.endswith(" --no-install-recommends python3-venv\n")


def rows() -> list[list[str]]:
    """The table's rows, in words."""
    lines = TABLE.read_text().splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


def test_the_table_is_complete() -> None:
    assert all(len(row) == 5 for row in rows())
    probes = [row[0] for row in rows()]
    assert len(set(probes)) == len(probes)
    assert set(probes) == {
        "module:ensurepip",
        *(f"command:{command}" for command in COMMANDS),
        *(f"header:{header}" for header in HEADERS),
    }


def test_an_unknown_kind_of_probe_is_an_error(tmp_path: Path, machine: FakeMachine) -> None:
    for name in ("host-packages", "find-python"):
        (tmp_path / name).write_text((ROOT / ".ci" / name).read_text())
        (tmp_path / name).chmod(0o755)
    (tmp_path / "host-packages.txt").write_text("programme:gcc gcc gcc gcc gcc\n")
    answer = machine.run(tmp_path / "host-packages")
    assert answer.code == 1
    assert "no such kind of probe: programme:gcc" in answer.err


def test_kernels_and_setup_agree_about_packages() -> None:
    ours = {row[0].partition(":")[2]: tuple(row[1:]) for row in rows()}
    theirs = {name: tool.packages for name, tool in TOOLS.items()}
    common = ours.keys() & theirs.keys()
    assert common
    assert {name: ours[name] for name in common} == {name: theirs[name] for name in common}
    assert [manager.removesuffix("-get") for manager in MANAGERS] == [
        *("apt", "dnf", "zypper", "pacman")
    ]


def test_setup_brings_what_the_catalog_needs() -> None:
    ours = {row[0].partition(":")[2] for row in rows()}
    for entry in load_catalog().entries.values():
        assert set(entry.needs.tools) <= ours, entry.name


def test_a_browser_is_asked_for_by_name_alone(machine: FakeMachine) -> None:
    machine.os_release(DEBIAN)
    furnish(machine)
    assert machine.run(SCRIPT).code == 0
    answer = machine.run(SCRIPT, "browser")
    assert answer.code == 3
    assert answer.err.splitlines()[-1].endswith("install --no-install-recommends chromium")
    machine.stub("chromium")
    assert machine.run(SCRIPT, "browser").code == 0
    assert machine.calls == []
