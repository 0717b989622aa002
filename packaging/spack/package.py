# Copyright The Busbar authors. SPDX-License-Identifier: (Apache-2.0 OR MIT)
"""The Spack recipe. 'packaging/build --only spack' fills in the version and the checksum of the source archive."""

import os

from spack_repo.builtin.build_systems.cargo import CargoPackage

from spack.package import *


class Busbar(CargoPackage):
    """Busbar tells what a power limit does to the queue of an HPC cluster, and which scheduling policy copes best
    with it: a simulator, and a daemon that runs the same policies on real jobs."""

    # The archive has no public address yet: run 'spack install' in the folder that holds it.
    manual_download = True
    url = f"file://{os.getcwd()}/busbar-@VERSION@.tar.gz"

    license("Apache-2.0 OR MIT", checked_by="The Busbar authors")

    version("@VERSION@", sha256="@SHA256@")

    variant("full", default=True, description="The daemon, node agents, Slurm and the web page")
    variant("parquet", default=False, description="Tables in Parquet")

    depends_on("c", type="build")  # SQLite is built from the source that its crate carries
    depends_on("rust@1.89:", type="build")

    @property
    def build_args(self):
        features = [name for name in ("full", "parquet") if self.spec.satisfies(f"+{name}")]
        return ["--locked", "--features", ",".join(features)] if features else ["--locked"]

    @property
    def check_args(self):
        return ["--locked", "--lib"]

    @run_after("install")
    def write_pages(self):
        """Lets the program write its manual pages and the completions of shells."""
        busbar = Executable(self.prefix.bin.busbar)
        busbar("man", "--out", self.prefix.share.man.man1)
        for shell, path in (
            ("bash", join_path(bash_completion_path(self.prefix), "busbar")),
            ("zsh", join_path(zsh_completion_path(self.prefix), "_busbar")),
            ("fish", join_path(fish_completion_path(self.prefix), "busbar.fish")),
        ):
            mkdirp(os.path.dirname(path))
            with open(path, "w", encoding="utf-8") as script:
                busbar("completions", shell, output=script)
