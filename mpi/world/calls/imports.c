/* Looks for refused calls among the symbols that the program and its libraries import. It does not see
 * libraries that are loaded later, or functions found by dlsym. collectives/binding/imports.c reads the same
 * tables for another purpose. */
#define _GNU_SOURCE
#include "world/calls/imports.h"

#include "world/calls/refuse.h"

#include <ctype.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

/* The files that refuse calls form the list: each REFUSE in them becomes a name here. */
#undef REFUSE
#undef REFUSE_MEETING
#define REFUSE(name, ...) #name,
#define REFUSE_MEETING(name, ...) #name,
static const char *const refused[] = {
#include "world/calls/refused_objects.c"
#include "world/calls/refused_partitioned.c"
};
enum { REFUSED = sizeof refused / sizeof *refused };

/* The number and length of names for which a line has room. */
enum { SHOWN = 6, LONGEST = 64 };

/* The MPI's own libraries and ours, which import everything. */
static const char *const of_mpi[] = {"libmpi", "libpmpi", "libcauseway_"};

struct found {
    unsigned char is[REFUSED];
    int count;
};

/* Returns a name without what each language adds: "win_create" for MPI_Win_create, mpi_win_create_,
 * mpi_win_create_f08_. PMPI_X counts only in the program itself: tools that wrap calls import it for all of
 * them. */
static const char *plain_name(const char *name, int is_program, char *room)
{
    static const char *const endings[] = {"__", "_", "_f08ts", "_f08", "_f90"};
    const char *begin = strncasecmp(name, "pmpi_", 5) == 0  ? (is_program ? name + 5 : NULL)
                        : strncasecmp(name, "mpi_", 4) == 0 ? name + 4
                                                            : NULL;
    size_t length = begin ? strlen(begin) : 0;
    if (length == 0 || length >= LONGEST)
        return NULL;
    for (size_t i = 0; i <= length; i++)
        room[i] = (char)tolower((unsigned char)begin[i]);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t end = strlen(endings[i]);
        if (length > end && strcmp(room + length - end, endings[i]) == 0)
            room[length -= end] = '\0';
    }
    return room;
}

static void note(struct found *found, const char *name, int is_program)
{
    char room[LONGEST];
    const char *plain = plain_name(name, is_program, room);
    for (int i = 0; plain && i < REFUSED; i++)
        if (!found->is[i] && strcasecmp(plain, refused[i]) == 0) {
            found->is[i] = 1;
            found->count++;
        }
}

struct object {
    const ElfW(Sym) *symbols;
    const char *names;
    /* Relocations of calls, and all others. */
    const ElfW(Rela) *relocations[2];
    size_t bytes[2];
    int is_program;
};

static void look_at(const struct object *of, struct found *found)
{
    for (int table = 0; table < 2; table++) {
        size_t count = of->relocations[table] ? of->bytes[table] / sizeof(ElfW(Rela)) : 0;
        for (size_t i = 0; i < count; i++) {
            size_t info = of->relocations[table][i].r_info;
            size_t symbol = sizeof info == 8 ? ELF64_R_SYM(info) : ELF32_R_SYM(info);
            if (symbol && of->symbols[symbol].st_shndx == SHN_UNDEF)
                note(found, of->names + of->symbols[symbol].st_name, of->is_program);
        }
    }
}

/* A library that imports most of the refused calls is a binding for another language, such as mpi4py: that
 * says nothing about the program above it. */
static void add(struct found *found, const struct object *object)
{
    struct found its = {.count = 0};
    look_at(object, &its);
    for (int i = 0; 2 * its.count < REFUSED && i < REFUSED; i++)
        if (its.is[i] && !found->is[i]) {
            found->is[i] = 1;
            found->count++;
        }
}

static int look_into(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    const char *slash = strrchr(info->dlpi_name, '/'), *name = slash ? slash + 1 : info->dlpi_name;
    for (size_t i = 0; i < sizeof of_mpi / sizeof *of_mpi; i++)
        if (strncmp(name, of_mpi[i], strlen(of_mpi[i])) == 0)
            return 0;
    const ElfW(Dyn) *section = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            section = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    struct object object = {.is_program = *info->dlpi_name == '\0'};
    for (; section && section->d_tag != DT_NULL; section++) {
        /* The loader relocates entries, unless the section is read-only (vDSO). */
        ElfW(Addr) value = section->d_un.d_ptr;
        const void *pointed = (const void *)(value < info->dlpi_addr ? info->dlpi_addr + value : value);
        switch (section->d_tag) {
        case DT_SYMTAB:
            object.symbols = pointed;
            break;
        case DT_STRTAB:
            object.names = pointed;
            break;
        case DT_JMPREL:
            object.relocations[0] = pointed;
            break;
        case DT_PLTRELSZ:
            object.bytes[0] = value;
            break;
        case DT_RELA:
            object.relocations[1] = pointed;
            break;
        case DT_RELASZ:
            object.bytes[1] = value;
            break;
        /* An older form of relocations, which this code does not read. */
        case DT_PLTREL:
            if (value != DT_RELA)
                return 0;
        }
    }
    if (object.symbols && object.names)
        add(found, &object);
    return 0;
}

void imports_tell(void)
{
    struct found found = {.count = 0};
    dl_iterate_phdr(look_into, &found);
    if (found.count == 0)
        return;
    char line[SHOWN * (LONGEST + 8) + 32];
    size_t end = 0;
    int shown = 0;
    for (int i = 0; i < REFUSED && shown < SHOWN; i++)
        if (found.is[i])
            end +=
                (size_t)snprintf(line + end, sizeof line - end, "%sMPI_%s", shown++ ? ", " : "", refused[i]);
    if (found.count > shown)
        snprintf(line + end, sizeof line - end, " and %d more", found.count - shown);
    fprintf(
        stderr,
        "causeway: this program uses %s, which %s not work over sites (docs/own-mpi.md); on a communicator "
        "within a site %s\n",
        line, found.count == 1 ? "does" : "do", found.count == 1 ? "it does" : "they do");
}
