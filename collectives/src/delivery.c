#define _GNU_SOURCE
#include "delivery.h"

#include "enter.h"
#include "sites.h"

#if defined(OPEN_MPI)

int delivery_is_awaited;

void delivery_begin(void) {}
void delivery_end(void) {}

#else

#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTING "MPIR_CVAR_CH4_OFI_ENABLE_RMA"

/* Until something else is known. */
int delivery_is_awaited = 1;

static int is_set;

/* Where a dynamic section's entry points to: libraries relocate it as they are loaded, but where the section is read-only. */
static const void *pointed(const struct dl_phdr_info *object, ElfW(Addr) address)
{
    return (const void *)(address < object->dlpi_addr ? object->dlpi_addr + address : address);
}

struct imports {
    const ElfW(Sym) *symbols;
    const char *names;
    /* The program itself, or Python, may load more later: then nobody knows what it will call. */
    int is_program;
};

/* Windows, and partitions, which go the same way. In C, or in any Fortran. */
static int needs_it(const char *name)
{
    static const char *const calls[] = {"mpi_win_", "mpi_psend_", "mpi_precv_"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strncasecmp(name, calls[i], strlen(calls[i])) == 0)
            return 1;
    return 0;
}

static int has_imports(const struct imports *of, const ElfW(Rela) *all, size_t bytes)
{
    for (size_t i = 0; of->symbols && of->names && i < bytes / sizeof *all; i++) {
        const ElfW(Sym) *symbol = &of->symbols[sizeof(void *) == 8 ? ELF64_R_SYM(all[i].r_info) : ELF32_R_SYM(all[i].r_info)];
        const char *name = of->names + symbol->st_name;
        if (symbol->st_shndx == SHN_UNDEF && (needs_it(name) || (of->is_program && strcmp(name, "dlopen") == 0)))
            return 1;
    }
    return 0;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The MPI's own libraries call each other. */
static int is_of_mpi(const char *name)
{
    static const char *const own[] = {"libmpi.so", "libmpich.so", "libmpi_abi.so", "libmpifort.so", "libmpifort_abi.so", "libmpichfort.so", "libmpicxx.so",
                                      "libmpichcxx.so", "libpmpi.so", "libcauseway_"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strncmp(name, own[i], strlen(own[i])) == 0)
            return 1;
    return 0;
}

static int look(struct dl_phdr_info *object, size_t size, void *first)
{
    (void)size;
    const char *name = name_of(object->dlpi_name);
    struct imports imports = {.is_program = *(int *)first || strncmp(name, "libpython", 9) == 0};
    *(int *)first = 0;
    const ElfW(Dyn) *section = NULL;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            section = (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    if (!section || is_of_mpi(name))
        return 0;
    const void *calls = NULL, *others = NULL;
    size_t calls_bytes = 0, others_bytes = 0;
    for (; section->d_tag != DT_NULL; section++) {
        switch (section->d_tag) {
        case DT_SYMTAB: imports.symbols = pointed(object, section->d_un.d_ptr); break;
        case DT_STRTAB: imports.names = pointed(object, section->d_un.d_ptr); break;
        case DT_JMPREL: calls = pointed(object, section->d_un.d_ptr); break;
        case DT_PLTRELSZ: calls_bytes = section->d_un.d_val; break;
        case DT_RELA: others = pointed(object, section->d_un.d_ptr); break;
        case DT_RELASZ: others_bytes = section->d_un.d_val; break;
        /* An older form of relocations, which this does not read. */
        case DT_REL: return 1;
        }
    }
    return (calls && has_imports(&imports, calls, calls_bytes)) || (others && has_imports(&imports, others, others_bytes));
}

/* MPICH goes by three names of it. */
static const char *own_setting(void)
{
    static const char *const names[] = {SETTING, "MPIR_PARAM_CH4_OFI_ENABLE_RMA", "MPICH_CH4_OFI_ENABLE_RMA"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return getenv(names[i]);
    return NULL;
}

void delivery_begin(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length, first = 1;
    if (!mpi_calls_fit() || !sites_may_be_several() || real.Get_library_version(version, &length) != MPI_SUCCESS)
        return;
    const char *said = own_setting();
    if (strncmp(version, "Intel(R) MPI", 12) == 0)
        delivery_is_awaited = 0;
    else if (said)
        delivery_is_awaited = strcmp(said, "0") != 0;
    else if (strncmp(version, "MPICH Version:", 14) == 0 && !dl_iterate_phdr(look, &first) && setenv(SETTING, "0", 0) == 0)
        is_set = 1, delivery_is_awaited = 0;
}

/* What this process starts decides for itself. */
void delivery_end(void)
{
    if (is_set)
        unsetenv(SETTING);
}

static void warn(void)
{
    static atomic_int said;
    if (is_set && !atomic_exchange(&said, 1))
        fprintf(stderr, "causeway collectives: this program makes a window, which nothing that was loaded at MPI_Init said it would: this may hang, and one-sided "
                        "operations of 16 kB and more may crash; set " SETTING "=1\n");
}

EXPORT int MPI_Win_create(void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    warn();
    return PASS(Win_create, base, size, unit, info, comm, win);
}
BOTH(Win_create);

EXPORT int MPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win)
{
    warn();
    return PASS(Win_allocate, size, unit, info, comm, base, win);
}
BOTH(Win_allocate);

EXPORT int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    warn();
    return PASS(Win_create_dynamic, info, comm, win);
}
BOTH(Win_create_dynamic);

#if MPI_VERSION >= 4
EXPORT int MPI_Win_create_c(void *base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    warn();
    OTHER("Win_create_c", (void *, MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, MPI_Win *), base, size, unit, info, comm, win);
}
BOTH(Win_create_c);

EXPORT int MPI_Win_allocate_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win)
{
    warn();
    OTHER("Win_allocate_c", (MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, void *, MPI_Win *), size, unit, info, comm, base, win);
}
BOTH(Win_allocate_c);
#endif

#endif
