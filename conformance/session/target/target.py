"""From the options of a run to its target: the kernel, and the ABI that it is judged by."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from conformance.abi.profile import Profile, ProfileError, on_release, profile_for
from conformance.results.exit_codes import KernelOrigin
from conformance.results.run import PatchFacts
from conformance.runner.user_module import UserModule
from conformance.session.target.gcov import NOTES, CountedObject
from conformance.session.target.kernel_arguments import checked_arguments
from conformance.session.target.user_modules import built_modules, id_with_modules, ready_modules
from host.files import digest_of, write_atomically
from host.progress import Progress, StreamProgress
from kernels.build.build import ensure
from kernels.build.bundled_modules import ModulesDirectory
from kernels.build.image import release_of
from kernels.build.out_of_tree_modules import ensure_module
from kernels.catalog.catalog import CATALOG
from kernels.catalog.entries import KernelEntry
from kernels.catalog.flavours import flavour
from kernels.catalog.patch import ENCODING, Patch
from kernels.errors import BadCatalogEntry, LostOptions, UserMistake
from kernels.request import Request
from kernels.store.built_kernel import BuiltKernel
from kernels.store.store import Store, default_root
from vm.qemu.accelerator import Accelerator, choose_accelerator
from vm.qemu.command_line import find_qemu
from vm.qemu.initramfs import NEEDED, pack

# Sources of the helper modules.
MODULES = Path(__file__).parents[3] / "fixtures" / "modules"

MODEL = "model"
# Identifies the build of the running kernel.
_VERSION = Path("/proc/version")
# Not in a kernel id.
_UNSAFE = re.compile(r"[^A-Za-z0-9_.+-]")
# Options that change a kernel, or need more than one.
_NOT_HERE = (
    "patch",
    "config",
    "flavour",
    "append",
    "ref",
    "modules",
    "module",
    "guests",
    "most_guests",
    "against",
)
# Options that name the kernel; a run has one of them.
KERNELS = ("kernel", "image", "tree", "here")
# The ABI of a self-check without --abi.
MODEL_ABI = "6.12.117"


class Target(Struct, frozen=True):
    """The kernel under test; without ``image`` it is the running one or the model.

    ``variant`` says what a modified kernel is a variant of.  ``config`` is its configuration file
    if known, ``build`` the key of this very build, ``patches`` those of its source, ``wanted`` the
    configuration lines that the guest must have.  ``modules`` are helper modules by name,
    ``user_modules`` are loaded before the first case.  ``initramfs`` loads drivers that an image
    has as modules.  ``counted`` are objects with gcov counters.  ``accelerator`` is None for the
    model, and for the kernel that runs ``here``.
    """

    id: str
    abi: str
    release: str = ""
    image: Path | None = None
    initramfs: Path | None = None
    source: str | None = None
    variant: str | None = None
    config: Path | None = None
    config_sha256: str | None = None
    build: str | None = None
    patches: tuple[PatchFacts, ...] = ()
    wanted: tuple[str, ...] = ()
    append: tuple[str, ...] = ()
    modules: Mapping[str, Path] = field(default_factory=dict)
    user_modules: tuple[UserModule, ...] = ()
    memory_mib: int = 512
    counted: tuple[CountedObject, ...] = ()
    accelerator: Accelerator | None = None
    origin: KernelOrigin = KernelOrigin.CATALOG
    here: bool = False

    @property
    def is_model(self) -> bool:
        """Whether this is a self-check."""
        return self.image is None and not self.here

    @property
    def flavour(self) -> str:
        """The flavour in the kernel id, or ""."""
        return self.id.partition("~")[2]

    @property
    def profile(self) -> Profile:
        """The profile to judge by.  Raises ProfileError for an unknown ABI."""
        return profile_for(self.abi, base=self.release or None)

    @property
    def without_user_events(self) -> str:
        """The message for a kernel without user_events."""
        return f"{self.id} was built without user_events"


def resolve(options: Namespace) -> Target:
    """The target of the options, built, with its accelerator tested.

    Raises KernelsError, VmError and ProfileError, with messages for the user.
    """
    check(options)
    if options.kernel == MODEL:
        target = Target(MODEL, options.abi or MODEL_ABI, accelerator=None)
    elif getattr(options, "here", None):
        target = running_kernel(options)
    elif options.image is not None:
        target = _image(options)
    else:
        target = _built(options)
    profile_for(target.abi)
    return target


def check(options: Namespace) -> None:
    """Refuse what is wrong before anything is built: no kernel, several, an ABI that is none,
    changes to a kernel that is not built here.

    Raises UserMistake.
    """
    if options.abi is not None:
        try:
            profile_for(options.abi)
        except ProfileError as error:
            raise UserMistake(f"--abi {options.abi}: {error}", "docs/abi.md lists ABIs") from error
    named = [name for name in KERNELS if getattr(options, name, None) is not None]
    if not named:
        last = ", --image FILE or --here" if hasattr(options, "here") else " or --image FILE"
        raise UserMistake("no kernel named", f"add --kernel 6.12, --tree DIR{last}")
    if len(named) > 1:
        raise UserMistake(f"--{named[0]} and --{named[1]} exclude each other", "give one of them")
    if "here" in named:
        _check_running_kernel(options)
    elif getattr(options, "even_so", None):
        raise UserMistake("--even-so goes with --here", "leave it out")
    for name, of in (("ref", "tree"), ("modules", "image")):
        if getattr(options, name) is not None and getattr(options, of) is None:
            raise UserMistake(f"--{name} goes with --{of}", f"add --{of}, or leave out --{name}")
    for name in ("patch", "config", "flavour"):
        if getattr(options, name) and (options.image is not None or options.kernel == MODEL):
            what = "an image" if options.image is not None else "the model"
            raise UserMistake(
                f"--{name} is for kernels that are built, and {what} is not",
                "name a kernel of the catalog (uevt kernels list) or a tree: --tree DIR",
            )
    for name, why in (("module", "loads no modules"), ("append", "takes no kernel arguments")):
        if getattr(options, name) and options.kernel == MODEL:
            raise UserMistake(f"the model {why}", f"name a kernel of the catalog, or no --{name}")


def running_config(release: str, cache: Path) -> Path | None:
    """The configuration of the running kernel, as it shows it or as it was installed."""
    try:
        text = gzip.decompress(Path("/proc/config.gz").read_bytes())
    except OSError:
        installed = Path(f"/boot/config-{release}")
        return installed if os.access(installed, os.R_OK) else None
    file = cache / "running" / "config"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, text)
    return file


def _check_running_kernel(options: Namespace) -> None:
    """Refuse what changes a kernel, or needs several of it."""
    for name in _NOT_HERE:
        if getattr(options, name, None):
            option = f"--{name.replace('_', '-')}"
            what = f"{option} and --here exclude each other: the running kernel is judged as it is"
            raise UserMistake(what, f"leave out {option}")
    if options.isolation == "case":
        what = "--isolation case boots a guest for every case, and --here boots none"
        raise UserMistake(what, "leave out --isolation")


def running_kernel(options: Namespace) -> Target:
    """The kernel that this process runs on."""
    release = os.uname().release
    config = running_config(release, default_root())
    return Target(
        id=f"here-{_UNSAFE.sub('-', release)}",
        abi=_abi(options, release, release),
        release=release,
        source="the running kernel",
        config=config,
        config_sha256=None if config is None else digest_of(config),
        build=digest_of(_VERSION),
        origin=KernelOrigin.USER,
        here=True,
    )


def _abi(options: Namespace, release: str, abi: str) -> str:
    """The ABI to judge by: that of --abi, else that of the kernel."""
    return abi if options.abi is None else on_release(options.abi, release)


def _image(options: Namespace) -> Target:
    image = Path(options.image).absolute()
    release = release_of(image)
    user_modules = ready_modules(options.module, release)
    initramfs = None
    if options.modules is not None:
        needed = ModulesDirectory(Path(options.modules), release).in_load_order(NEEDED)
        packed = [(module.name, module.content) for module in needed]
        initramfs = pack(packed, Store().initramfs)
        Store().used(initramfs)
        Store().hold(initramfs)
    accelerator = prove_accelerator(image)
    return Target(
        id=id_with_modules(f"image-{release}", options.module),
        abi=_abi(options, release, release),
        release=release,
        image=image,
        initramfs=initramfs,
        source=_described_source(f"image {image.name}", user_modules),
        config=_installed_config(image, release),
        build=digest_of(image),
        append=checked_arguments(options.append, image, accelerator),
        user_modules=user_modules,
        accelerator=accelerator,
        origin=KernelOrigin.USER,
    )


def _installed_config(image: Path, release: str) -> Path | None:
    """The configuration that a distribution installs beside its image."""
    config = image.with_name(f"config-{release}")
    return config if config.is_file() else None


def request_of(options: Namespace) -> Request:
    """The build that the options request."""
    return Request(
        options.kernel or "",
        patches=tuple(map(Path, options.patch)),
        configs=tuple(map(Path, options.config)),
        flavour=options.flavour,
        tree=None if options.tree is None else Path(options.tree),
        ref=options.ref,
    )


def kernel_id(options: Namespace) -> str:
    """The id of the target before it is built.

    Unknown for an image.  Raises KernelsError.
    """
    check(options)
    if options.kernel == MODEL:
        return MODEL
    return id_with_modules(request_of(options).entry().kernel_id, options.module)


def check_abi(entry: KernelEntry) -> None:
    """Refuse an ABI or a switch that does not exist, before the kernel is built.

    Raises BadCatalogEntry.
    """
    try:
        profile_for(entry.abi_for(MODEL_ABI))
    except ProfileError as error:
        key, hint = "abi", "name a release from 5.18 on"
        if entry.differs:
            key, hint = "differs", "name switches of conformance/abi/switches.py"
        raise BadCatalogEntry(CATALOG / f"{entry.name}.toml", key, str(error), hint) from error


def _built(options: Namespace) -> Target:
    request = request_of(options)
    store, progress = Store(), StreamProgress(sys.stderr)
    entry = request.entry(store, progress)
    if options.abi is None:
        check_abi(entry)
    try:
        built = ensure(entry, store, progress=progress)
    except LostOptions as error:
        raise request.blame(error) from error
    store.hold(built.image.parent)
    if options.tree is not None:
        # The tree may have been edited while the build waited for a lock.
        entry = replace(entry, revision=built.revision)
    accelerator = prove_accelerator(built.image)
    user_modules = built_modules(options.module, entry, built, store, progress)
    # A user's tree or configuration may lack user_events on purpose.
    own = options.tree is not None or options.config
    target = Target(
        id=id_with_modules(built.kernel_id, options.module),
        abi=_abi(options, built.release, built.abi),
        release=built.release,
        image=built.image,
        source=_described_source(built.source, user_modules),
        variant=f"of {built.of}" if built.of else None,
        config=built.config,
        config_sha256=built.config_sha256,
        build=built.key,
        patches=tuple(map(_patch_facts, entry.patches)),
        wanted=built.wanted,
        append=checked_arguments(options.append, built.image, accelerator),
        modules=_modules(entry, store, progress),
        user_modules=user_modules,
        counted=_counted(built),
        accelerator=accelerator,
        origin=KernelOrigin.USER if own else KernelOrigin.CATALOG,
    )
    for file in (*target.modules.values(), *(each.file for each in user_modules)):
        store.hold(file.parent)
    return target if options.flavour is None else _flavoured(target, options.flavour)


def _patch_facts(patch: Patch) -> PatchFacts:
    """A patch for results.json, which is UTF-8."""
    content = patch.text.encode(**ENCODING)
    text = content.decode("utf-8", "replace")
    return PatchFacts(patch.name, hashlib.sha256(content).hexdigest(), text)


def _counted(built: BuiltKernel) -> tuple[CountedObject, ...]:
    notes = [file for file in built.kept if file.suffix == NOTES]
    return tuple(CountedObject.of(file, built.kept_directory) for file in notes)


def _flavoured(target: Target, name: str) -> Target:
    """The target with the memory and the time limits of a flavour."""
    needs, accelerator = flavour(name), target.accelerator
    assert accelerator is not None
    slower = replace(accelerator, slowness=accelerator.slowness * needs.slowness)
    return replace(target, memory_mib=needs.memory_mib, accelerator=slower)


def _described_source(source: str, user_modules: Sequence[UserModule]) -> str:
    """The source of a kernel and its modules, for reports."""
    return ", ".join([source, *(f"module {module.source}" for module in user_modules)])


def _modules(entry: KernelEntry, store: Store, progress: Progress) -> dict[str, Path]:
    """The helper modules for a kernel; none where no case could use them."""
    if not {"CONFIG_MODULES=y", "CONFIG_USER_EVENTS=y"} <= set(entry.wanted):
        return {}
    return {
        directory.name: ensure_module(entry, directory, store, progress)
        for directory in sorted(MODULES.iterdir())
    }


def prove_accelerator(image: Path) -> Accelerator:
    """The accelerator that boots this kernel on this host.  Raises VmError."""
    return choose_accelerator(image, qemu=find_qemu(None), cache=default_root())
