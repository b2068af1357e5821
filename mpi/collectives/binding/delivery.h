/* MPICH over libfabric counts a message of more than 128 bytes as sent only when the far side has confirmed
 * it, so each MPI_Send takes a round trip. It does this if one-sided operations use libfabric, but not with
 * MPIR_CVAR_CH4_OFI_ENABLE_RMA=0 (init_hints in its ofi_init.c). With that, however, one-sided operations and
 * partitioned communication of 16 kB or more crash. So this library sets the variable around MPI_Init only in
 * MPICH 5.0, and only if nothing that is loaded could make a window, or load code that does. A program that
 * makes a window anyway is ended (docs/decisions/0011). */
#ifndef CAUSEWAY_DELIVERY_H
#define CAUSEWAY_DELIVERY_H

#include "common/binding/mpi_calls.h"

/* Called before and after MPI_Init. */
void delivery_begin(void);
void delivery_end(void);

#if !defined(OPEN_MPI)
/* Called when MPICH reads its settings before MPI_Init: later settings have no effect. */
void delivery_settings_are_read(void);

/* Ends the program if this library has disabled the feature that `call` needs. */
void delivery_refuse(const char *call);
#endif

/* Whether a send between sites completes only after a round trip. */
extern int delivery_is_awaited;
/* Whether large messages between sites are cut into pieces, because the MPI holds large ones back. All ranks
 * must have the same value: one end sends the pieces that the other receives. In a world of several MPIs,
 * none are cut. */
extern int delivery_is_cut;

#endif
