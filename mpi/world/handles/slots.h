/* Slots: messages of collective operations within a site use one native communicator, whatever communicator
 * they belong to. Its tags are divided into slots. Each process chooses a slot for each of its communicators,
 * and tells the communicator's other processes at the site: a message carries the slot that its receiver has
 * chosen. So no further native communicators have to be made for these messages: the program would lack them,
 * and making one might have to wait for one that the program makes. */
#ifndef CAUSEWAY_WORLD_SLOTS_H
#define CAUSEWAY_WORLD_SLOTS_H

#include <stdint.h>

enum {
    /* The number of tags of one communicator: those of plain operations, of MPI_Comm_create_group, of the
     * leaders of MPI_Intercomm_create, and of tasks (world/native/task.c). */
    SLOT_TAGS = 1 << 14,
    /* The slot of MPI_COMM_WORLD at every process. */
    SLOT_OF_WORLD = 0,
    NO_SLOT = -1,
};

/* `tag_ub` is the highest tag of the site's MPI: with 2^28, as in MPICH 4.0 over UCX, there are 16384
 * slots. */
void slots_begin(int64_t tag_ub);

/* Takes a slot that has been free for long, so that a message which nobody has received does not match a
 * receive of another communicator. Returns NO_SLOT if none is free. */
int32_t slot_take(void);
void slot_give_back(int32_t slot);

#endif
