#define _GNU_SOURCE
#include "collectives/binding/delivery.h"

#include "collectives/binding/fatal.h"
#include "collectives/binding/imports.h"
#include "collectives/select/mpich_settings.h"
#include "collectives/select/settings.h"
#include "common/binding/mpi_calls.h"

#if defined(OPEN_MPI)

int delivery_is_awaited, delivery_is_cut;

void delivery_begin(void) {}
void delivery_end(void) {}

#else

#include <stdio.h>
#include <string.h>

/* True until this is known to be unnecessary. */
int delivery_is_awaited = 1, delivery_is_cut = 1;

static int is_set, was_read;

/* Returns what follows `title` in MPICH's version text. */
static const char *told(const char *version, const char *title)
{
    const char *found = strstr(version, title);
    return found ? found + strlen(title) : "";
}

/* Whether MPICH uses libfabric. If it was built for both UCX and libfabric, it uses the one named first,
 * unless the user chooses the other. */
static int is_over_libfabric(const char *version)
{
    const char *device = told(version, "MPICH Device:"), *chosen = mpich_settings_netmod();
    size_t length = strcspn(device, "\n");
    const char *ofi = memmem(device, length, "ofi", 3), *ucx = memmem(device, length, "ucx", 3);
    if (!ofi || !ucx)
        return ofi != NULL;
    return chosen && *chosen ? strcmp(chosen, "ofi") == 0 : ofi < ucx;
}

/* Whether the version is one in which this setting was seen to break only windows and partitioned
 * communication: 5.0.0, 5.0.1 and 5.0.2. A prerelease or a vendor's version has a longer name. An MPICH built
 * with "am-only" (active messages only) sends everything the way that fails. */
static int is_known(const char *version)
{
    int patch, end = 0;
    const char *number = told(version, "MPICH Version:");
    if (sscanf(number, " 5.0.%d%n", &patch, &end) != 1 || !strchr(" \n", number[end]))
        return 0;
    return !strstr(version, "am-only");
}

void delivery_begin(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    if (mpi_calls_are_worlds()) {
        delivery_is_awaited = delivery_is_cut = 0;
        return;
    }
    if (!mpi_calls_fit() || !settings_may_have_sites() ||
        real.Get_library_version(version, &length) != MPI_SUCCESS)
        return;
    const char *said = mpich_settings_rma();
    if (strncmp(version, "MPICH Version:", 14) != 0)
        delivery_is_awaited = strncmp(version, "Intel(R) MPI", 12) != 0;
    else if (!is_over_libfabric(version))
        delivery_is_awaited = 0;
    else if (said)
        delivery_is_awaited = strcmp(said, "0") != 0;
    else if (is_known(version) && !was_read && !mpich_settings_are_tuned() && !imports_may_make_windows())
        is_set = mpich_settings_turn_rma_off(), delivery_is_awaited = !is_set;
}

void delivery_end(void)
{
    /* Removes the setting again, so that programs which this process starts decide for themselves. */
    if (is_set)
        mpich_settings_take_back();
}

void delivery_settings_are_read(void) { was_read = 1; }

/* An error code would not be enough. The call is collective, so other ranks would wait in it, and a program
 * that ignores error codes would continue: its one-sided operations might crash, or meet ranks that do them
 * in another way. */
void delivery_refuse(const char *call)
{
    if (is_set)
        fatal("%s: nothing that was loaded at MPI_Init said that this program would call it, and MPICH was "
              "set up without: start the job with " MPICH_RMA "=1",
              call);
}

#endif
