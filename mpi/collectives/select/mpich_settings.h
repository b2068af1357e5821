/* What the environment tells MPICH about how it sends (binding/delivery.h). */
#ifndef CAUSEWAY_MPICH_SETTINGS_H
#define CAUSEWAY_MPICH_SETTINGS_H

/* The setting by which one-sided operations go by libfabric or not. */
#define MPICH_RMA "MPIR_CVAR_CH4_OFI_ENABLE_RMA"

/* Returns its value, under any of its three names; NULL where none is set. */
const char *mpich_settings_rma(void);

/* Sets it to "0", until it is taken back. False where that cannot be done. */
int mpich_settings_turn_rma_off(void);
void mpich_settings_take_back(void);

/* Returns the network module that is chosen; NULL where none is. */
const char *mpich_settings_netmod(void);

/* Whether MPICH is set up in another way than `causeway run` does it, so in one that nobody has tried. */
int mpich_settings_are_tuned(void);

#endif
