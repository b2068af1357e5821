/* ray2mesh --model FILE --events FILE --stations FILE --out FOLDER [--phases P,S,...] [--mesh 5,5,100]:
 * traces the first arrival of each phase from every event to every station, and says how long each ray is in
 * each cell of a mesh. README.md has what it reads and writes. */
#include "ray2mesh.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int run(const struct options *options, int rank, MPI_Comm comm, char error[RAY2MESH_ERROR_BYTES])
{
    static struct survey survey;
    struct entries mine = {0, 0, NULL}, owned = {0, 0, NULL};
    struct ray *rays = NULL;
    double at[4] = {MPI_Wtime()};
    if (survey_share(&survey, options, comm, error))
        return -1;
    if (rank == 0)
        rays = calloc(survey_items(&survey), sizeof *rays);
    int failed = rank == 0 && !rays;
    MPI_Bcast(&failed, 1, MPI_INT, 0, comm);
    if (failed)
        snprintf(error, RAY2MESH_ERROR_BYTES, "out of memory for %" PRId64 " rays", survey_items(&survey));
    at[1] = MPI_Wtime();
    failed = failed || trace_all(&survey, comm, rays, &mine, error);
    at[2] = MPI_Wtime();
    failed = failed || exchange(&survey.mesh, comm, &mine, &owned, error);
    at[3] = MPI_Wtime();
    failed = failed || output_write(&survey, rays, &owned, options->out, comm, error);
    if (rank == 0 && !failed)
        fprintf(stderr, "ray2mesh: broadcast %.3f s, rays %.3f s, exchange %.3f s, output %.3f s\n",
                at[1] - at[0], at[2] - at[1], at[3] - at[2], MPI_Wtime() - at[3]);
    free(rays);
    entries_free(&mine);
    entries_free(&owned);
    survey_free(&survey);
    return failed ? -1 : 0;
}

int main(int argc, char **argv)
{
    char error[RAY2MESH_ERROR_BYTES] = "";
    struct options options;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int status = options_read(&options, argc, argv, error)    ? 2
                 : run(&options, rank, MPI_COMM_WORLD, error) ? 1
                                                              : 0;
    if (status && rank == 0)
        fprintf(stderr, "ray2mesh: %s\n", error);
    MPI_Finalize();
    return status;
}
