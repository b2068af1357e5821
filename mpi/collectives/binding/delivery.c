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

/* True until something else is known. */
int delivery_is_awaited = 1, delivery_is_cut = 1;

static int is_set, was_read;

/* Returns the rest of the line that begins with `title`, of what MPICH says of itself. */
static const char *told(const char *version, const char *title)
{
    const char *found = strstr(version, title);
    return found ? found + strlen(title) : "";
}

/* Whether MPICH goes over libfabric. Where it was built for both UCX and libfabric it uses the first, unless
 * the user says otherwise. */
static int is_over_libfabric(const char *version)
{
    const char *device = told(version, "MPICH Device:"), *chosen = mpich_settings_netmod();
    size_t length = strcspn(device, "\n");
    const char *ofi = memmem(device, length, "ofi", 3), *ucx = memmem(device, length, "ucx", 3);
    if (!ofi || !ucx)
        return ofi != NULL;
    return chosen && *chosen ? strcmp(chosen, "ofi") == 0 : ofi < ucx;
}

/* Whether the version is one in which this setting was seen to spoil windows alone: 5.0.0, 5.0.1 and 5.0.2. A
 * version before a release, or a vendor's own, has a longer name. An MPICH that was built for active messages
 * alone sends everything the way that fails. */
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
    /* The setting goes again, so that what this process starts decides for itself. */
    if (is_set)
        mpich_settings_take_back();
}

void delivery_settings_are_read(void) { was_read = 1; }

/* An error would not do. The call is collective, so others wait in it, and a program that does not look at
 * errors would go on: its one-sided operations may crash, or meet others that do them otherwise. */
void delivery_refuse(const char *call)
{
    if (is_set)
        fatal("%s: nothing that was loaded at MPI_Init said that this program would call it, and MPICH was "
              "set up without: start the job with " MPICH_RMA "=1",
              call);
}

#endif
