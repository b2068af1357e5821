/* Slots: the messages of collective operations within a site go over one native communicator, whatever
 * communicator they are of. Its tags are divided into slots. Each process gives each of its communicators a
 * slot of its own choice, and tells the other processes of the site that are in it: a message bears the slot
 * that its receiver has chosen. So no native communicator has to be made for them, which the program would
 * lack, and which might have to wait for one that the program makes. */
#ifndef CAUSEWAY_WORLD_SLOTS_H
#define CAUSEWAY_WORLD_SLOTS_H

#include <stdint.h>

enum {
    /* The tags of one communicator: those of plain operations, of MPI_Comm_create_group, of the leaders of
     * MPI_Intercomm_create, and of tasks (world/native/task.c). */
    SLOT_TAGS = 1 << 14,
    /* MPI_COMM_WORLD has this one at every process. */
    SLOT_OF_WORLD = 0,
    NO_SLOT = -1,
};

/* The site's MPI takes tags up to this: with 2^28, as MPICH 4.0 over UCX, there are 16384 slots. */
void slots_begin(int64_t tag_ub);

/* Takes one that was free for long, so that a message which nobody has received does not meet a receive of
 * another communicator. NO_SLOT where none is free. */
int32_t slot_take(void);
void slot_give_back(int32_t slot);

#endif
