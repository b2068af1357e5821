#define _GNU_SOURCE
#include "collectives/binding/imports.h"

#include "collectives/select/text.h"

#include <elf.h>
#include <link.h>
#include <string.h>

/* The MPI's own libraries and ours only pass window calls on; they make no windows themselves. For an
 * exception (ROMIO) see mpich_settings.c. */
static const char *const of_mpi[] = {
    "libmpi.so",       "libmpich.so", "libmpi_abi.so",     "libmpifort.so",  "libmpicxx.so",
    "libmpichfort.so", "libpmpi.so",  "libmpifort_abi.so", "libmpichcxx.so", "libcauseway_"};

/* These libraries import dlopen or dlsym in MPICH's processes: libfabric and UCX from PyPI, hwloc from
 * Debian, the next three if a site builds MPICH with them, and GCC's OpenMP for C and Fortran. Each loads
 * only its own plugins, none of which calls an MPI. Libraries that are not in this list may load anything:
 * language runtimes, LLVM's OpenMP (it loads tools), profilers. */
static const char *const loads_no_windows[] = {"libfabric.so", "libucs.so",  "libucm.so",     "libhwloc.so",
                                               "libxml2.so",   "libpmix.so", "libibverbs.so", "libgomp.so"};

/* Whether a name is that of a window call, or of a partitioned call, which uses the same mechanism: in C, in
 * any Fortran, or as a PMPI name. It may be anywhere in the symbol, because compilers put a module's name
 * before it. */
static int names_windows(const char *name)
{
    return strcasestr(name, "mpi_win_") || strcasestr(name, "mpi_psend_") || strcasestr(name, "mpi_precv_");
}

/* Whether a name is that of a call that can find functions which are not imported. */
static int names_loading(const char *name)
{
    static const char *const calls[] = {"dlopen", "dlmopen", "dlsym", "dlvsym"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(name, calls[i]) == 0)
            return 1;
    return 0;
}

struct imports {
    const ElfW(Sym) *symbols;
    const char *names;
    int may_load;
};

static int may_make_windows(const struct imports *of, const ElfW(Rela) *all, size_t bytes)
{
    for (size_t i = 0; all && i < bytes / sizeof *all; i++) {
        size_t info = all[i].r_info, symbol = sizeof info == 8 ? ELF64_R_SYM(info) : ELF32_R_SYM(info);
        /* Some relocations have no symbol. */
        if (symbol == 0)
            continue;
        if (!of->symbols || !of->names)
            return 1;
        const char *name = of->names + of->symbols[symbol].st_name;
        if (of->symbols[symbol].st_shndx == SHN_UNDEF &&
            (names_windows(name) || (of->may_load && names_loading(name))))
            return 1;
    }
    return 0;
}

/* Returns the address that an entry of a dynamic section refers to. The loader relocates the entries unless
 * the section is read-only. */
static const void *pointed(const struct dl_phdr_info *object, ElfW(Addr) address)
{
    return (const void *)(address < object->dlpi_addr ? object->dlpi_addr + address : address);
}

/* Examines one object. Ends the iteration by returning 1 if the object may make windows. */
static int look(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size, (void)unused;
    const char *slash = strrchr(object->dlpi_name, '/'), *name = slash ? slash + 1 : object->dlpi_name;
    struct imports imports = {.may_load = !BEGINS_WITH_ANY(name, loads_no_windows)};
    const ElfW(Dyn) *section = NULL;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            section = (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    if (!section || BEGINS_WITH_ANY(name, of_mpi))
        return 0;
    const void *calls = NULL, *others = NULL;
    size_t calls_bytes = 0, others_bytes = 0;
    for (; section->d_tag != DT_NULL; section++) {
        switch (section->d_tag) {
        case DT_SYMTAB:
            imports.symbols = pointed(object, section->d_un.d_ptr);
            break;
        case DT_STRTAB:
            imports.names = pointed(object, section->d_un.d_ptr);
            break;
        case DT_JMPREL:
            calls = pointed(object, section->d_un.d_ptr);
            break;
        case DT_PLTRELSZ:
            calls_bytes = section->d_un.d_val;
            break;
        case DT_RELA:
            others = pointed(object, section->d_un.d_ptr);
            break;
        case DT_RELASZ:
            others_bytes = section->d_un.d_val;
            break;
        /* An older form of relocations, which this code does not read: they may refer to any symbol. */
        case DT_REL:
            return 1;
        case DT_PLTREL:
            if (section->d_un.d_val != DT_RELA)
                return 1;
        }
    }
    return may_make_windows(&imports, calls, calls_bytes) || may_make_windows(&imports, others, others_bytes);
}

int imports_may_make_windows(void) { return dl_iterate_phdr(look, NULL) != 0; }
