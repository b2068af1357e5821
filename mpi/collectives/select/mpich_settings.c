#define _GNU_SOURCE
#include "collectives/select/mpich_settings.h"

#include "collectives/select/text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The setting was tested with libfabric's tcp provider, which `causeway run` chooses, and with no other
 * setting. With MPIR_CVAR_CH4_OFI_ENABLE_TAGGED=0, plain messages crash. And ROMIO, which is part of the MPI,
 * can be told to read and write files through windows on some file systems. MPICH accepts three names for
 * each setting. */
int mpich_settings_are_tuned(void)
{
    static const char *const names[] = {"MPIR_CVAR_CH4_OFI_", "MPIR_PARAM_CH4_OFI_", "MPICH_CH4_OFI_",
                                        "ROMIO_WRITE_AGGMETHOD=", "ROMIO_READ_AGGMETHOD="};
    const char *provider = getenv("FI_PROVIDER");
    for (char **variable = environ; *variable; variable++)
        if (BEGINS_WITH_ANY(*variable, names))
            return 1;
    return !provider || strcmp(provider, "tcp") != 0;
}

const char *mpich_settings_rma(void)
{
    static const char *const names[] = {MPICH_RMA, "MPIR_PARAM_CH4_OFI_ENABLE_RMA",
                                        "MPICH_CH4_OFI_ENABLE_RMA"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return getenv(names[i]);
    return NULL;
}

int mpich_settings_turn_rma_off(void) { return setenv(MPICH_RMA, "0", 0) == 0; }

void mpich_settings_take_back(void) { unsetenv(MPICH_RMA); }

const char *mpich_settings_netmod(void) { return getenv("MPIR_CVAR_CH4_NETMOD"); }
