/* Linked into ray2mesh with --wrap=rays_search_find: RAY2MESH_LOST=RANK,FILE kills rank RANK at its first
 * ray, by the signal that nobody can catch, and makes FILE before. Other ranks take their time for each ray
 * until FILE is there, so that the rank gets its ray before all is done. */
#include "arrivals.h"

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* A ray of other ranks takes so many milliseconds at most. */
#define LOOKS 20

int __real_rays_search_find(const struct rays_search *search, double distance, struct rays_arrival *arrivals,
                            int room);
int __wrap_rays_search_find(const struct rays_search *search, double distance, struct rays_arrival *arrivals,
                            int room);

static void die(const char *file)
{
    fclose(fopen(file, "w"));
    raise(SIGKILL);
}

int __wrap_rays_search_find(const struct rays_search *search, double distance, struct rays_arrival *arrivals,
                            int room)
{
    int rank;
    char *file, *asked = getenv("RAY2MESH_LOST");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (asked) {
        long lost = strtol(asked, &file, 10);
        if (rank == lost)
            die(file + 1);
        for (int i = 0; i < LOOKS && access(file + 1, F_OK); i++)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return __real_rays_search_find(search, distance, arrivals, room);
}
