/* Ranks, checks and the verdict, for the programs of this directory. They run with two ranks or more, at one
 * site or over several. */
#ifndef CAUSEWAY_WORLD_TEST_H
#define CAUSEWAY_WORLD_TEST_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, wrong;

#define CHECK(what)                                                          \
    do {                                                                     \
        if (!(what) && wrong++ < 10) {                                       \
            printf("rank %d: %s:%d: %s\n", rank, __FILE__, __LINE__, #what); \
            fflush(stdout);                                                  \
        }                                                                    \
    } while (0)

static inline void begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

/* Says "all right" once, or fails. */
static inline int end(const char *name)
{
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && all == 0)
        printf("%s: %d ranks, all right\n", name, size);
    MPI_Finalize();
    return all != 0;
}

/* Random numbers from a seed. */
static uint64_t state;
static inline unsigned draw(unsigned below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % below;
}

#endif
