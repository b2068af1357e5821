/* One rank ends in some way, and the others wait for it.
 *
 *     mpirun -n 4 ends HOW RANK
 *
 * HOW: segv, kill, abrt: by that signal; abort5: by MPI_Abort with 5; exit3: with 3, without MPI_Finalize;
 * last3: with 3, after MPI_Finalize. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void end(const char *how)
{
    if (!strcmp(how, "segv"))
        raise(SIGSEGV);
    if (!strcmp(how, "kill"))
        raise(SIGKILL);
    if (!strcmp(how, "abrt"))
        abort();
    if (!strcmp(how, "abort5"))
        MPI_Abort(MPI_COMM_WORLD, 5);
    if (!strcmp(how, "exit3"))
        _exit(3);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 3) {
        fputs("ends HOW RANK\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int is_the_one = rank == atoi(argv[2]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_the_one)
        end(argv[1]);
    /* Nobody is told of a rank that ends after this. */
    if (strcmp(argv[1], "last3"))
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return is_the_one && !strcmp(argv[1], "last3") ? 3 : 0;
}
