#define _GNU_SOURCE
#include "binding/delivery.h"

#include "binding/fatal.h"
#include "binding/imports.h"
#include "binding/mpi_calls.h"
#include "select/mpich_settings.h"
#include "select/settings.h"

#if defined(OPEN_MPI)

int delivery_is_awaited;

void delivery_begin(void) {}
void delivery_end(void) {}

#else

#include <stdio.h>
#include <string.h>

/* Until something else is known. */
int delivery_is_awaited = 1;

static int is_set, was_read;

/* Of what MPICH says of itself, the part of a line behind its title. */
static const char *told(const char *version, const char *title)
{
    const char *found = strstr(version, title);
    return found ? found + strlen(title) : "";
}

/* Where MPICH was built for both, UCX and libfabric, the first is used, if the user does not say. */
static int is_over_libfabric(const char *version)
{
    const char *device = told(version, "MPICH Device:"), *chosen = mpich_settings_netmod();
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

void delivery_begin(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
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
    /* What this process starts decides for itself. */
    if (is_set)
        mpich_settings_take_back();
}

void delivery_settings_are_read(void) { was_read = 1; }

/* The call is collective, so that others wait in it, and a program that does not look would go on without:
 * one-sided operations may crash now, or find others that do them otherwise. */
void delivery_refuse(const char *call)
{
    if (is_set)
        fatal("%s: nothing that was loaded at MPI_Init said that this program would call it, and MPICH was "
              "set up without: start the job with " MPICH_RMA "=1",
              call);
}

#endif
