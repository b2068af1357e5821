#define _GNU_SOURCE
#include "collectives/binding/imports.h"

#include "collectives/select/text.h"

#include <elf.h>
#include <link.h>
#include <string.h>

/* The MPI's own libraries, and ours, hand windows on and make none of themselves. mpich_settings.h has an
 * exception. */
static const char *const of_mpi[] = {
    "libmpi.so",       "libmpich.so", "libmpi_abi.so",     "libmpifort.so",  "libmpicxx.so",
    "libmpichfort.so", "libpmpi.so",  "libmpifort_abi.so", "libmpichcxx.so", "libcauseway_"};

/* These libraries ask for dlopen or dlsym in MPICH's processes: libfabric and UCX of PyPI's, hwloc of
 * Debian's, the next three where a site builds it with them, and OpenMP's in C and Fortran. Each loads
 * plugins of its own kind, none of which calls an MPI. What is not in this list may load anything: languages,
 * LLVM's OpenMP (it loads tools), profilers. */
static const char *const loads_no_windows[] = {"libfabric.so", "libucs.so",  "libucm.so",     "libhwloc.so",
                                               "libxml2.so",   "libpmix.so", "libibverbs.so", "libgomp.so"};

/* Whether a name is that of a call for windows, or for partitions, which go the same way: in C, in any
 * Fortran, and as tools call them (PMPI). It may stand anywhere in the name, because compilers put a module's
 * name before it. */
static int names_windows(const char *name)
{
    return strcasestr(name, "mpi_win_") || strcasestr(name, "mpi_psend_") || strcasestr(name, "mpi_precv_");
}

/* Whether a name is that of a call that can find others which no import shows: later, or under any name. */
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

/* Returns where a dynamic section's entry points to. The loader relocates entries, except where the section
 * is read-only. */
static const void *pointed(const struct dl_phdr_info *object, ElfW(Addr) address)
{
    return (const void *)(address < object->dlpi_addr ? object->dlpi_addr + address : address);
}

/* Looks at one object. Ends the iteration with 1 where the object may make windows. */
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
        /* This is an older form of relocations, which this library does not read: it may say anything. */
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
