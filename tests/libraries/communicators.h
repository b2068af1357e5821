/* Random numbers that are the same on all ranks, and communicators of many kinds that are made and freed by
 * them. */
#ifndef CAUSEWAY_COMMUNICATORS_H
#define CAUSEWAY_COMMUNICATORS_H

#include <mpi.h>
#include <stdint.h>

#define MAX_RANKS 64
#define COMMUNICATORS 6
/* The number of the communicator that does not hold all ranks. */
#define PARTS 2

static MPI_Comm communicators[COMMUNICATORS];
static uint64_t state;

/* A generator (xorshift64*) that is the same on all ranks. */
static uint32_t draw(uint32_t below)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * 2685821657736338717ULL) >> 33) % below;
}

static MPI_Comm split(MPI_Comm parent, int colour, int key)
{
    MPI_Comm made;
    MPI_Comm_split(parent, colour, key, &made);
    return made;
}

static MPI_Comm create(MPI_Comm parent, const int ranks[], int count, int by_group)
{
    MPI_Group all, some;
    MPI_Comm made;
    MPI_Comm_group(parent, &all);
    MPI_Group_incl(all, count, ranks, &some);
    if (by_group)
        MPI_Comm_create_group(parent, some, 7, &made);
    else
        MPI_Comm_create(parent, some, &made);
    MPI_Group_free(&all);
    MPI_Group_free(&some);
    return made;
}

static MPI_Comm grid(MPI_Comm parent, int size, int dimensions)
{
    int dims[3] = {0}, periods[3] = {1, 0, 1};
    MPI_Comm made;
    MPI_Dims_create(size, dimensions, dims);
    MPI_Cart_create(parent, dimensions, dims, periods, 1, &made);
    return made;
}

static void make_communicators(int rank, int size)
{
    int odd[MAX_RANKS];
    communicators[0] = MPI_COMM_WORLD;
    communicators[1] = split(MPI_COMM_WORLD, 0, -rank);
    communicators[PARTS] = split(MPI_COMM_WORLD, rank % 2, rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &communicators[3]);
    communicators[4] = grid(MPI_COMM_WORLD, size, 1);
    /* All ranks are in an order that is neither the world's nor its reverse. */
    for (int i = 0; i < size; i++)
        odd[i] = i % 2 ? size - 1 - i / 2 : i / 2;
    communicators[5] = create(MPI_COMM_WORLD, odd, size, 0);
}

/* Makes a communicator of all ranks of another, in any order. */
static MPI_Comm make_of(MPI_Comm parent, int rank, int size)
{
    int order[MAX_RANKS];
    MPI_Comm made;
    for (int i = 0; i < size; i++) {
        int place = (int)draw((uint32_t)i + 1);
        order[i] = order[place];
        order[place] = i;
    }
    switch (draw(4)) {
    case 0:
        MPI_Comm_dup(parent, &made);
        return made;
    case 1:
        return split(parent, 0, order[rank]);
    case 2:
        return grid(parent, size, 1 + (int)draw(3));
    default:
        return create(parent, order, size, (int)draw(2));
    }
}

static void release(MPI_Comm *comm)
{
    if (draw(2))
        MPI_Comm_free(comm);
    else
        MPI_Comm_disconnect(comm);
}

/* Frees one of them, but not the world. Another that is made of any of them takes its place, before or
 * afterwards. */
__attribute__((unused)) static void replace_communicator(void)
{
    int which = 1 + (int)draw(COMMUNICATORS - 1), of = (int)draw(COMMUNICATORS), rank, size;
    int goes_first = of != which && draw(2);
    MPI_Comm old = communicators[which];
    if (of == PARTS)
        of = 0;
    if (goes_first)
        release(&old);
    MPI_Comm_rank(communicators[of], &rank);
    MPI_Comm_size(communicators[of], &size);
    if (which == PARTS) {
        int parts = 1 + (int)draw(3), key = draw(2) ? rank : -rank;
        communicators[which] = split(communicators[of], rank % parts, key);
    } else {
        communicators[which] = make_of(communicators[of], rank, size);
    }
    if (!goes_first)
        release(&old);
}

static void free_communicators(void)
{
    for (int i = 1; i < COMMUNICATORS; i++)
        MPI_Comm_free(&communicators[i]);
}

#endif
