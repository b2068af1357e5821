/* A program that asks for its site by MPI_Comm_split_type gets the ranks of it.
 *
 * sites RANKS_OF_SITE...: sizes of the sites, in the order of ranks. */
#include "../include/causeway_mpi.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#define MPI_COMM_TYPE_HW_GUIDED 13
#endif

int main(int argc, char **argv)
{
    int rank, size, wrong = 0, any, first = 0, site = 1;
    MPI_Info info;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    while (site < argc && rank >= first + atoi(argv[site]))
        first += atoi(argv[site++]);
    const char *names[] = {CAUSEWAY_RESOURCE_SITE, "cluster"};
    for (int i = 0; i < 2; i++) {
        MPI_Comm mine = MPI_COMM_NULL;
        MPI_Info_create(&info);
        MPI_Info_set(info, "mpi_hw_resource_type", names[i]);
        /* Keys turn the order round. */
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, -rank, info, &mine);
        MPI_Info_free(&info);
        int own = -1;
        size = -1;
        if (mine != MPI_COMM_NULL) {
            MPI_Comm_size(mine, &size);
            MPI_Comm_rank(mine, &own);
            MPI_Comm_free(&mine);
        }
        int expected = site < argc ? atoi(argv[site]) : 0;
        if (size != expected || own != first + expected - 1 - rank) {
            fprintf(stderr, "rank %d: %s has %d ranks, and this is %d of them\n", rank, names[i], size, own);
            wrong = 1;
        }
    }
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("sites: %s\n", any ? "WRONG" : "all right");
    MPI_Finalize();
    return any;
}
