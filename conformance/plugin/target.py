"""Which kernel is judged, by which contract: from the options to a target."""

from __future__ import annotations

import sys
import tempfile
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from conformance.abi.profiles import Profile, profile_for
from conformance.report.exits import KernelOrigin
from kernels.build import ensure
from kernels.catalog import KernelEntry
from kernels.errors import UserMistake
from kernels.image import release_of
from kernels.loadable import ModulesDirectory
from kernels.modules import ensure_module
from kernels.progress import Progress, StreamProgress
from kernels.request import Request
from kernels.store import Store, default_root
from vm.accelerator import Accelerator, Verdict, prove
from vm.argv import MachineSpec, find_qemu
from vm.deadline import Deadline
from vm.errors import NoRoot, VmError
from vm.initramfs import NEEDED, pack
from vm.machine import Machine

# Sources of the modules that cases need.
MODULES = Path(__file__).parents[2] / "fixtures" / "modules"

MODEL = "model"
# Seconds of an idle machine from QEMU's start to the agent's first answer.
_BOOT_S = 12.0
# The options that name what to judge, of which there is one.
KERNELS = ("kernel", "image", "tree")
# The contract the model judges itself by when no --abi is given.
MODEL_ABI = "6.12.117"


@dataclass(frozen=True, slots=True)
class Target:
    """The kernel under test.  ``image`` None is the model in the place of a kernel.

    ``variant`` says what a kernel that we changed is a variant of.  ``wanted`` are the
    configuration lines the guest must really have, ``modules`` the files of helper modules
    for it by name, ``initramfs`` loads the drivers of an image that has them as modules;
    ``accelerator`` is None for the model.
    """

    id: str
    abi: str
    release: str = ""
    image: Path | None = None
    initramfs: Path | None = None
    source: str | None = None
    variant: str | None = None
    config_sha256: str | None = None
    wanted: tuple[str, ...] = ()
    append: tuple[str, ...] = ()
    modules: Mapping[str, Path] = field(default_factory=dict)
    accelerator: Accelerator | None = None
    origin: KernelOrigin = KernelOrigin.CATALOG

    @property
    def is_model(self) -> bool:
        """Whether this is a self-check."""
        return self.image is None

    @property
    def profile(self) -> Profile:
        """The contract.  Raises ProfileError for an ABI that is none."""
        return profile_for(self.abi, base=self.release or None)

    def to_json(self) -> dict[str, Any]:
        """For a worker process."""
        plain = asdict(self)
        for name in ("image", "initramfs"):
            plain[name] = None if plain[name] is None else str(plain[name])
        plain["modules"] = {name: str(path) for name, path in self.modules.items()}
        return plain

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Target:
        """Read what ``to_json`` wrote."""
        accelerator = plain["accelerator"]
        if accelerator is not None:
            accelerator = Accelerator(**{**accelerator, "verdict": Verdict(accelerator["verdict"])})
        return cls(
            **{
                **plain,
                "image": None if plain["image"] is None else Path(plain["image"]),
                "initramfs": None if plain["initramfs"] is None else Path(plain["initramfs"]),
                "wanted": tuple(plain["wanted"]),
                "append": tuple(plain["append"]),
                "modules": {name: Path(path) for name, path in plain["modules"].items()},
                "accelerator": accelerator,
                "origin": KernelOrigin(plain["origin"]),
            }
        )


class Misplaced(UserMistake):
    """Options that cannot be given together."""


def resolve(options: Namespace) -> Target:
    """The target that the options of a run name, built and its accelerator proven.

    Raises KernelsError, VmError and ProfileError; all their messages are for the user.
    """
    _check(options)
    if options.kernel == MODEL:
        target = Target(MODEL, options.abi or MODEL_ABI, accelerator=None)
    elif options.image is not None:
        target = _image(options)
    else:
        target = _built(options)
    profile_for(target.abi)
    return target


def _check(options: Namespace) -> None:
    """Refuse what names no kernel, more than one, or changes to what is not built here."""
    named = [name for name in KERNELS if getattr(options, name) is not None]
    if not named:
        which = "--kernel 6.12, --kernel model, --tree DIR or --image FILE"
        raise Misplaced("no kernel named", f"add {which}")
    if len(named) > 1:
        raise Misplaced(f"--{named[0]} and --{named[1]} exclude each other", "give one of them")
    for name, of in (("ref", "tree"), ("modules", "image")):
        if getattr(options, name) is not None and getattr(options, of) is None:
            raise Misplaced(f"--{name} goes with --{of}", f"add --{of}, or leave out --{name}")
    for name in ("patch", "config", "flavour"):
        if getattr(options, name) and (options.image is not None or options.kernel == MODEL):
            what = "an image" if options.image is not None else "the model"
            raise Misplaced(
                f"--{name} is for kernels that are built, and {what} is not",
                "name a kernel of the catalog (uevt kernels list) or a tree: --tree DIR",
            )


def _image(options: Namespace) -> Target:
    image = Path(options.image).absolute()
    release = release_of(image)
    initramfs = None
    if options.modules is not None:
        needed = ModulesDirectory(Path(options.modules), release).ordered(NEEDED)
        packed = [(module.name, module.content) for module in needed]
        initramfs = pack(packed, Store().initramfs)
    target = Target(
        id=f"image-{release}",
        abi=options.abi or release,
        release=release,
        image=image,
        initramfs=initramfs,
        source=f"image {image.name}",
        append=tuple(options.append),
        accelerator=prove_accelerator(image),
        origin=KernelOrigin.USER,
    )
    _check_root(target)
    return target


def _check_root(target: Target) -> None:
    """Boot once and raise NoRoot where that is why no case could run; others say more later."""
    assert target.image is not None
    assert target.accelerator is not None
    spec = MachineSpec(target.image, target.accelerator, initramfs=target.initramfs)
    deadline = Deadline(_BOOT_S * spec.accelerator.slowness, "agent after the boot")
    with tempfile.TemporaryDirectory(prefix="uevt-") as directory:
        try:
            Machine.boot(spec, directory=Path(directory), deadline=deadline).close()
        except NoRoot:
            raise
        except VmError:
            return


def request_of(options: Namespace) -> Request:
    """What the options ask to be built."""
    return Request(
        options.kernel or "",
        patches=tuple(map(Path, options.patch)),
        configs=tuple(map(Path, options.config)),
        flavour=options.flavour,
        tree=None if options.tree is None else Path(options.tree),
        ref=options.ref,
    )


def _built(options: Namespace) -> Target:
    store, progress = Store(), StreamProgress(sys.stderr)
    entry = request_of(options).entry(store, progress)
    built = ensure(entry, store, progress=progress)
    if options.tree is not None:
        # Edited while it waited, a tree is built as it was then.
        entry = replace(entry, revision=built.revision)
    return Target(
        id=built.kernel_id,
        abi=options.abi or built.abi,
        release=built.release,
        image=built.image,
        source=built.source,
        variant=f"of {built.of}" if built.of else None,
        config_sha256=built.config_sha256,
        wanted=built.wanted,
        append=tuple(options.append),
        modules=_modules(entry, store, progress),
        accelerator=prove_accelerator(built.image),
        origin=KernelOrigin.CATALOG if options.tree is None else KernelOrigin.USER,
    )


def _modules(entry: KernelEntry, store: Store, progress: Progress) -> dict[str, Path]:
    """The suite's helper modules for a kernel; none where no case could use them."""
    if not {"CONFIG_MODULES=y", "CONFIG_USER_EVENTS=y"} <= set(entry.wanted):
        return {}
    return {
        directory.name: ensure_module(entry, directory, store, progress)
        for directory in sorted(MODULES.iterdir())
    }


def prove_accelerator(image: Path) -> Accelerator:
    """The accelerator that boots this kernel here.  Raises VmError."""
    return prove(image, qemu=find_qemu(None), cache=default_root())
