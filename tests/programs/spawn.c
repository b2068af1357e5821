/* Spawns two processes from a job that has all of its slots in use, merges both worlds and adds up over them.
   Prints where the children are. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { CHILDREN = 2, TAG = 9 };

/* The sum over both worlds of one for each process, which must be their number. */
static int sum_of_ones(MPI_Comm all)
{
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
    return sum;
}

int main(int argc, char **argv)
{
    int rank, size, length, right = 1;
    char host[MPI_MAX_PROCESSOR_NAME] = "";
    MPI_Comm parent, children, all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Intercomm_merge(parent, 1, &all);
        MPI_Send(host, sizeof host, MPI_CHAR, 0, TAG, all);
        sum_of_ones(all);
        MPI_Comm_free(&all);
        MPI_Comm_disconnect(&parent);
        return MPI_Finalize();
    }
    MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                   MPI_ERRCODES_IGNORE);
    MPI_Intercomm_merge(children, 0, &all);
    for (int i = 0; rank == 0 && i < CHILDREN; i++) {
        MPI_Recv(host, sizeof host, MPI_CHAR, size + i, TAG, all, MPI_STATUS_IGNORE);
        printf("spawn: child %d is on %s\n", i, host);
    }
    right = sum_of_ones(all) == size + CHILDREN;
    if (rank == 0)
        printf("spawn: %s\n", right ? "all right" : "WRONG sum over both worlds");
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&children);
    MPI_Finalize();
    return !right;
}
