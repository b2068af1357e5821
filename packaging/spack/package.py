# Spack recipe, for repos/spack_repo/NAME/packages/causeway/package.py of a repository of your own.
# `make source` fills in the version and the checksum of the source tar, whose vendored crates make
# Cargo need no network. Spack itself has not run it.
#
#     spack mirror add causeway file:///DIRECTORY     # which has causeway/causeway-VERSION.tar.xz
#     spack install causeway

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Causeway(Package):
    """Runs an unmodified MPI program as one job across several clusters, which are joined by a
    wide-area network. It needs no new MPI, no recompilation and no root."""

    # Only mirrors have the tar until it is published at an address of its own.
    manual_download = True

    license("Apache-2.0")

    version("@VERSION@", sha256="@SHA256@", extension="tar.xz")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("python@3.11:", type="build")
    depends_on("rust@1.95:", type="build")

    conflicts("platform=darwin", msg="Causeway hooks the system calls of Linux")
    conflicts("platform=windows", msg="Causeway hooks the system calls of Linux")

    def install(self, spec, prefix):
        make("install", f"PREFIX={prefix}")

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def says_its_version(self):
        Executable(self.prefix.bin.causeway)("--version")
