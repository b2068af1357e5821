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
    /* The program itself may load more later: then nobody knows what it will call. */
    int is_program;
};

static int makes_windows(const struct imports *of, const ElfW(Rela) *all, size_t bytes)
{
    for (size_t i = 0; of->symbols && of->names && i < bytes / sizeof *all; i++) {
        const ElfW(Sym) *symbol = &of->symbols[sizeof(void *) == 8 ? ELF64_R_SYM(all[i].r_info) : ELF32_R_SYM(all[i].r_info)];
        const char *name = of->names + symbol->st_name;
        if (symbol->st_shndx == SHN_UNDEF && (strncasecmp(name, "mpi_win_", 8) == 0 || (of->is_program && strcmp(name, "dlopen") == 0)))
            return 1;
    }
    return 0;
}

/* The MPI's own libraries call each other. */
static int is_of_mpi(const char *path)
{
    static const char *const own[] = {"libmpi.so", "libmpich.so", "libmpi_abi.so", "libmpifort.so", "libmpifort_abi.so", "libmpichfort.so", "libmpicxx.so",
                                      "libmpichcxx.so", "libpmpi.so", "libcauseway_"};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strncmp(name, own[i], strlen(own[i])) == 0)
            return 1;
    return 0;
}

static int look(struct dl_phdr_info *object, size_t size, void *first)
{
    (void)size;
    struct imports imports = {.is_program = *(int *)first};
    *(int *)first = 0;
    const ElfW(Dyn) *section = NULL;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            section = (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    if (!section || is_of_mpi(object->dlpi_name))
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
    return (calls && makes_windows(&imports, calls, calls_bytes)) || (others && makes_windows(&imports, others, others_bytes));
}

void delivery_begin(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length, first = 1;
    if (!mpi_calls_fit() || !sites_may_be_several() || real.Get_library_version(version, &length) != MPI_SUCCESS)
        return;
    const char *said = getenv(SETTING);
    if (strncmp(version, "MPICH Version:", 14) != 0)
        /* Intel MPI, and others of this binary interface, do not wait. */
        delivery_is_awaited = 0;
    else if (said)
        delivery_is_awaited = strcmp(said, "0") != 0;
    else if (!dl_iterate_phdr(look, &first) && setenv(SETTING, "0", 0) == 0)
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
        fprintf(stderr, "causeway collectives: this program makes a window, which nothing that was loaded at MPI_Init said it would: one-sided operations of 16 kB and more "
                        "may crash; set " SETTING "=1\n");
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

#endif
