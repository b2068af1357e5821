/* The environment variables that tell MPICH how to send (binding/delivery.h). */
#ifndef CAUSEWAY_MPICH_SETTINGS_H
#define CAUSEWAY_MPICH_SETTINGS_H

/* Whether MPICH does one-sided operations through libfabric. */
#define MPICH_RMA "MPIR_CVAR_CH4_OFI_ENABLE_RMA"

/* Returns its value, under any of its three names; NULL if none is set. */
const char *mpich_settings_rma(void);

/* Sets it to "0" until it is taken back. Returns false on failure. */
int mpich_settings_turn_rma_off(void);
void mpich_settings_take_back(void);

/* Returns the network module that the user chose; NULL if none. */
const char *mpich_settings_netmod(void);

/* Whether MPICH has settings other than those of `causeway run`, a combination that has not been tested. */
int mpich_settings_are_tuned(void);

#endif
