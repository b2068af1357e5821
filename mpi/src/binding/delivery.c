#define _GNU_SOURCE
#include "binding/delivery.h"

#include "binding/export.h"
#include "topology/sites.h"

#if defined(OPEN_MPI)

int delivery_is_awaited;

void delivery_begin(void) {}
void delivery_end(void) {}

#else

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SETTING "MPIR_CVAR_CH4_OFI_ENABLE_RMA"

/* Until something else is known. */
int delivery_is_awaited = 1;

static int is_set, was_read;

static int begins_with_any(const char *text, const char *const *all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(text, all[i], strlen(all[i])) == 0)
            return 1;
    return 0;
}
#define BEGINS_WITH_ANY(text, all) begins_with_any(text, all, sizeof all / sizeof *all)

/* The MPI's own libraries, and ours, hand windows on, and make none of themselves: but see is_tuned. */
static const char *const of_mpi[] = {"libmpi.so",     "libmpich.so",     "libmpi_abi.so", "libmpifort.so",
                                     "libmpicxx.so",  "libmpichfort.so", "libpmpi.so",    "libmpifort_abi.so",
                                     "libmpichcxx.so", "libcauseway_"};

/* Those that ask for dlopen or dlsym in MPICH's processes: libfabric and UCX of PyPI's, hwloc of Debian's,
 * the next three where a site builds it with them, and OpenMP's in C and Fortran. Each loads plugins of its
 * own kind, none of which calls an MPI. What is not here may load anything: languages, LLVM's OpenMP (it
 * loads tools), profilers. */
static const char *const loads_no_windows[] = {"libfabric.so", "libucs.so",  "libucm.so",     "libhwloc.so",
                                               "libxml2.so",   "libpmix.so", "libibverbs.so", "libgomp.so"};

/* Windows, and partitions, which go the same way: in C, in any Fortran, and as tools call them (PMPI).
 * Anywhere in the name: compilers put a module's before it. */
static int names_windows(const char *name)
{
    return strcasestr(name, "mpi_win_") || strcasestr(name, "mpi_psend_") || strcasestr(name, "mpi_precv_");
}

/* By which calls may be found that no import shows: later, or under any name. */
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
        /* Not all relocations are of symbols. */
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

/* Where a dynamic section's entry points to: libraries relocate it as they are loaded, but where the section
 * is read-only. */
static const void *pointed(const struct dl_phdr_info *object, ElfW(Addr) address)
{
    return (const void *)(address < object->dlpi_addr ? object->dlpi_addr + address : address);
}

/* Ends the iteration with 1 at what may make windows. */
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
        case DT_SYMTAB: imports.symbols = pointed(object, section->d_un.d_ptr); break;
        case DT_STRTAB: imports.names = pointed(object, section->d_un.d_ptr); break;
        case DT_JMPREL: calls = pointed(object, section->d_un.d_ptr); break;
        case DT_PLTRELSZ: calls_bytes = section->d_un.d_val; break;
        case DT_RELA: others = pointed(object, section->d_un.d_ptr); break;
        case DT_RELASZ: others_bytes = section->d_un.d_val; break;
        /* An older form of relocations, which this does not read. */
        case DT_REL: return 1;
        case DT_PLTREL:
            if (section->d_un.d_val != DT_RELA)
                return 1;
        }
    }
    return may_make_windows(&imports, calls, calls_bytes) || may_make_windows(&imports, others, others_bytes);
}

/* Of what MPICH says of itself, the part of a line behind its title. */
static const char *told(const char *version, const char *title)
{
    const char *found = strstr(version, title);
    return found ? found + strlen(title) : "";
}

/* Where MPICH was built for both, UCX and libfabric, the first is used, if the user does not say. */
static int is_over_libfabric(const char *version)
{
    const char *device = told(version, "MPICH Device:"), *chosen = getenv("MPIR_CVAR_CH4_NETMOD");
    size_t length = strcspn(device, "\n");
    const char *ofi = memmem(device, length, "ofi", 3), *ucx = memmem(device, length, "ucx", 3);
    if (!ofi || !ucx)
        return ofi != NULL;
    return chosen && *chosen ? strcmp(chosen, "ofi") == 0 : ofi < ucx;
}

/* Those in which the setting was seen to leave all right but windows: 5.0.0, 5.0.1 and 5.0.2. What is before
 * a release or a vendor's own has more in its version. One that was built for active messages alone sends
 * everything the way that fails. */
static int is_known(const char *version)
{
    int patch, end = 0;
    const char *number = told(version, "MPICH Version:");
    if (sscanf(number, " 5.0.%d%n", &patch, &end) != 1 || !strchr(" \n", number[end]))
        return 0;
    return !strstr(version, "am-only");
}

/* The setting was seen with libfabric's tcp, which `causeway run` chooses, and with nothing else set: with
 * MPIR_CVAR_CH4_OFI_ENABLE_TAGGED=0 plain messages crash. ROMIO, which is inside the MPI, has a way to write
 * and read files by windows, for some file systems, if it is told to. MPICH goes by three names of each
 * setting. */
static int is_tuned(void)
{
    static const char *const names[] = {"MPIR_CVAR_CH4_OFI_", "MPIR_PARAM_CH4_OFI_", "MPICH_CH4_OFI_",
                                        "ROMIO_WRITE_AGGMETHOD=", "ROMIO_READ_AGGMETHOD="};
    const char *provider = getenv("FI_PROVIDER");
    for (char **variable = environ; *variable; variable++)
        if (BEGINS_WITH_ANY(*variable, names))
            return 1;
    return !provider || strcmp(provider, "tcp") != 0;
}

static const char *own_setting(void)
{
    static const char *const names[] = {SETTING, "MPIR_PARAM_CH4_OFI_ENABLE_RMA",
                                        "MPICH_CH4_OFI_ENABLE_RMA"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return getenv(names[i]);
    return NULL;
}

void delivery_begin(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    if (!mpi_calls_fit() || !sites_may_be_several() ||
        real.Get_library_version(version, &length) != MPI_SUCCESS)
        return;
    const char *said = own_setting();
    if (strncmp(version, "MPICH Version:", 14) != 0)
        delivery_is_awaited = strncmp(version, "Intel(R) MPI", 12) != 0;
    else if (!is_over_libfabric(version))
        delivery_is_awaited = 0;
    else if (said)
        delivery_is_awaited = strcmp(said, "0") != 0;
    else if (is_known(version) && !was_read && !is_tuned() && !dl_iterate_phdr(look, NULL))
        is_set = setenv(SETTING, "0", 0) == 0, delivery_is_awaited = !is_set;
}

void delivery_end(void)
{
    /* What this process starts decides for itself. */
    if (is_set)
        unsetenv(SETTING);
}

/* Here MPICH reads its settings, if nothing was before: what is set later does nothing. */
EXPORT int MPI_T_init_thread(int required, int *provided)
{
    was_read = 1;
    OTHER("T_init_thread", (int, int *), required, provided);
}
BOTH(T_init_thread);

#if MPI_VERSION >= 4
EXPORT int MPI_Session_init(MPI_Info info, MPI_Errhandler errors, MPI_Session *session)
{
    was_read = 1;
    OTHER("Session_init", (MPI_Info, MPI_Errhandler, MPI_Session *), info, errors, session);
}
BOTH(Session_init);
#endif

/* One-sided operations may crash now, or find others that do them otherwise. Ended as by any error that
 * nobody handles, whatever the program's handler is: the call is collective, so that others wait in it, and a
 * program that does not look would go on without. MPICH's MPI_Abort has the launcher kill all at once, which
 * lost what was said before in one of ten. */
static void refuse(const char *call)
{
    if (!is_set)
        return;
    fprintf(stderr,
            "causeway collectives: %s: nothing that was loaded at MPI_Init said that this program would call "
            "it, and MPICH was set up without: start the job with " SETTING "=1\n",
            call);
    real.Comm_set_errhandler(handle.comm_world, MPI_ERRORS_ARE_FATAL);
    real.Comm_call_errhandler(handle.comm_world, MPI_ERR_OTHER);
    abort();
}

/* MPI_Win_allocate_shared is none of these: what processes of one host share does not go by libfabric. */
EXPORT int MPI_Win_create(void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    refuse("MPI_Win_create");
    return PASS(Win_create, base, size, unit, info, comm, win);
}
BOTH(Win_create);

EXPORT int MPI_Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *win)
{
    refuse("MPI_Win_allocate");
    return PASS(Win_allocate, size, unit, info, comm, base, win);
}
BOTH(Win_allocate);

EXPORT int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    refuse("MPI_Win_create_dynamic");
    return PASS(Win_create_dynamic, info, comm, win);
}
BOTH(Win_create_dynamic);

#if MPI_VERSION >= 4
EXPORT int MPI_Win_create_c(void *base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm,
                            MPI_Win *win)
{
    refuse("MPI_Win_create_c");
    OTHER("Win_create_c", (void *, MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, MPI_Win *), base, size, unit, info,
          comm, win);
}
BOTH(Win_create_c);

EXPORT int MPI_Win_allocate_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void *base,
                              MPI_Win *win)
{
    refuse("MPI_Win_allocate_c");
    OTHER("Win_allocate_c", (MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, void *, MPI_Win *), size, unit, info,
          comm, base, win);
}
BOTH(Win_allocate_c);

#define PARAMETERS(MEMORY)                                                                              \
    MEMORY memory, int partitions, MPI_Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,\
        MPI_Info info, MPI_Request *request
#define PARTITIONED(Name, MEMORY)                                                                       \
    EXPORT int MPI_##Name(PARAMETERS(MEMORY))                                                           \
    {                                                                                                   \
        refuse("MPI_" #Name);                                                                           \
        OTHER(#Name, (PARAMETERS(MEMORY)), memory, partitions, count, type, peer, tag, comm, info, request);\
    }                                                                                                   \
    BOTH(Name)

PARTITIONED(Psend_init, const void *);
PARTITIONED(Precv_init, void *);
#endif

#endif
