/* What the environment says to MPICH of how it sends (binding/delivery.h). */
#ifndef CAUSEWAY_MPICH_SETTINGS_H
#define CAUSEWAY_MPICH_SETTINGS_H

/* Whether one-sided operations go by libfabric. */
#define MPICH_RMA "MPIR_CVAR_CH4_OFI_ENABLE_RMA"

/* What is said of it, by any of the three names of a setting; NULL where nothing is. */
const char *mpich_settings_rma(void);

/* Says "0", until it is taken back. Whether it could. */
int mpich_settings_turn_rma_off(void);
void mpich_settings_take_back(void);

/* The network module that is chosen; NULL where none is. */
const char *mpich_settings_netmod(void);

/* Whether MPICH is set up in another way than `causeway run` does it, and so than was looked at. */
int mpich_settings_are_tuned(void);

#endif
