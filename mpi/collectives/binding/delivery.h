/* MPICH over libfabric takes a message of more than 128 bytes for sent when the far side has confirmed it:
 * each MPI_Send takes a round trip. It does so where one-sided operations go by libfabric, and not with
 * MPIR_CVAR_CH4_OFI_ENABLE_RMA=0 (init_hints in its ofi_init.c), with which one-sided operations and
 * partitioned communication of 16 kB and more crash. That is set around MPI_Init in MPICH 5.0, where nothing
 * that is loaded could make a window, or load what does; what makes one all the same is ended
 * (docs/decisions/0011). */
#ifndef CAUSEWAY_DELIVERY_H
#define CAUSEWAY_DELIVERY_H

#include "common/binding/mpi_calls.h"

/* Called before and after MPI_Init. */
void delivery_begin(void);
void delivery_end(void);

#if !defined(OPEN_MPI)
/* Called where MPICH reads its settings before MPI_Init: what is set later does nothing. */
void delivery_settings_are_read(void);

/* Ends the program where a call needs what MPICH was set up without. */
void delivery_refuse(const char *call);
#endif

/* Whether a message between sites counts as sent a round trip later. */
extern int delivery_is_awaited;
/* Whether large messages between sites are cut, since the MPI holds them back. All ranks answer alike: one
 * end sends the pieces that the other receives. In a world of several MPIs nobody cuts. */
extern int delivery_is_cut;

#endif
