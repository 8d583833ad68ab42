"""Which kernel is judged, by which contract: from the options to a target."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from conformance.abi.profiles import Profile, ProfileError, profile_for
from conformance.report.exits import KernelOrigin
from kernels.build import ensure
from kernels.catalog import load_catalog
from kernels.image import release_of
from kernels.progress import StreamProgress
from kernels.store import Store, default_root
from vm.accelerator import Accelerator, Verdict, prove
from vm.argv import find_qemu

MODEL = "model"
# The contract the model judges itself by when no --abi is given.
MODEL_ABI = "6.12.117"


@dataclass(frozen=True, slots=True)
class Target:
    """The kernel under test.  ``image`` None is the model in the place of a kernel.

    ``wanted`` are the configuration lines the guest must really have; ``accelerator`` is
    None for the model.
    """

    id: str
    abi: str
    release: str = ""
    image: Path | None = None
    source: str | None = None
    config_sha256: str | None = None
    wanted: tuple[str, ...] = ()
    append: tuple[str, ...] = ()
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
        plain["image"] = None if self.image is None else str(self.image)
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
                "wanted": tuple(plain["wanted"]),
                "append": tuple(plain["append"]),
                "accelerator": accelerator,
                "origin": KernelOrigin(plain["origin"]),
            }
        )


def resolve(kernel: str | None, image: str | None, abi: str | None, append: list[str]) -> Target:
    """The target the options name, built and its accelerator proven.

    Raises KernelsError, VmError and ProfileError; all their messages are for the user.
    """
    if kernel == MODEL:
        target = Target(MODEL, abi or MODEL_ABI, accelerator=None)
    elif image is not None:
        target = _image(Path(image), abi, tuple(append))
    elif kernel is not None:
        target = _catalog(kernel, abi, tuple(append))
    else:
        raise ProfileError("no kernel named: add --kernel 6.12, --kernel model or --image FILE")
    profile_for(target.abi)
    return target


def _image(image: Path, abi: str | None, append: tuple[str, ...]) -> Target:
    image = image.absolute()
    release = release_of(image)
    return Target(
        id=f"image-{release}",
        abi=abi or release,
        release=release,
        image=image,
        source=f"image {image.name}",
        append=append,
        accelerator=prove_accelerator(image),
        origin=KernelOrigin.USER,
    )


def _catalog(name: str, abi: str | None, append: tuple[str, ...]) -> Target:
    entry = load_catalog().find(name)
    built = ensure(entry, Store(), progress=StreamProgress(sys.stderr))
    return Target(
        id=built.kernel_id,
        abi=abi or built.abi,
        release=built.release,
        image=built.image,
        source=built.source,
        config_sha256=built.config_sha256,
        wanted=built.wanted,
        append=append,
        accelerator=prove_accelerator(built.image),
    )


def prove_accelerator(image: Path) -> Accelerator:
    """The accelerator that boots this kernel here.  Raises VmError."""
    return prove(image, qemu=find_qemu(None), cache=default_root())
