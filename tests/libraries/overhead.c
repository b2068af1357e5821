/* What the library costs where it has nothing to improve: barriers on communicators of one rank go through it
 * and past it in turn. It must have sent nothing and made no communicator, nor for a few on MPI_COMM_WORLD
 * where the job is on one site.
 *
 * overhead CALLS ROUNDS SITES: rank 0 prints, for each round and communicator,
 * `sites,communicator,round,calls,native,library`, the last two in nanoseconds of processor time for each
 * call. SITES are those of CAUSEWAY_COLLECTIVES_SITES, `a` or `a,a` for one. */
#include "native.h"

#include <stdint.h>
#include <string.h>
#include <time.h>

/* Processor time is counted, because on a busy host the longer of two runs would pay for what others do. */
static int64_t now_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static double nanoseconds_of_each(int (*barrier)(MPI_Comm), MPI_Comm comm, int calls)
{
    int64_t began = now_nanoseconds();
    for (int i = 0; i < calls; i++)
        barrier(comm);
    return (double)(now_nanoseconds() - began) / calls;
}

/* Returns what the next communicator is known by. It is another when one has been made and kept. */
static intptr_t next_handle(void)
{
    MPI_Comm next;
    NATIVE(Comm_dup)(MPI_COMM_SELF, &next);
#if defined(OPEN_MPI)
    intptr_t known = MPI_Comm_c2f(next);
#else
    intptr_t known = (intptr_t)next;
#endif
    NATIVE(Comm_free)(&next);
    return known;
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int calls = argc > 1 ? atoi(argv[1]) : 1000, rounds = argc > 2 ? atoi(argv[2]) : 1;
    const char *sites = argc > 3 ? argv[3] : "a";
    void (*read_crossings)(int64_t *) = (void (*)(int64_t *))dlsym(RTLD_DEFAULT, CROSSINGS);
    if (!read_crossings) {
        fprintf(stderr, "overhead: the library is not preloaded\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int (*native)(MPI_Comm) = NATIVE(Barrier);
    MPI_Comm alone;
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &alone);
    struct {
        const char *name;
        MPI_Comm comm;
    } of[] = {{"self", MPI_COMM_SELF}, {"one rank", alone}};
    intptr_t before = next_handle();
    for (int round = 1; round <= rounds; round++)
        for (int i = 0; i < 2; i++) {
            double past = nanoseconds_of_each(native, of[i].comm, calls),
                   through = nanoseconds_of_each(MPI_Barrier, of[i].comm, calls);
            if (rank == 0)
                printf("%s,%s,%d,%d,%.1f,%.1f\n", sites, of[i].name, round, calls, past, through);
        }
    for (int i = 0; !strchr(sites, 'b') && i < 10; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    int64_t crossings[2];
    read_crossings(crossings);
    int made = next_handle() != before;
    if (made || crossings[0])
        fprintf(stderr, "overhead: rank %d: %lld messages between sites; %s\n", rank, (long long)crossings[0],
                made ? "the library has made a communicator" : "no communicator made");
    MPI_Comm_free(&alone);
    MPI_Finalize();
    return made || crossings[0];
}
