/* MPI_Init makes the world, MPI_Finalize and MPI_Abort end it. */
#define _GNU_SOURCE
#include "common/binding/export.h"
#include "common/forms/forms.h"
#include "world/basic/basic.h"
#include "world/calls/imports.h"
#include "world/engine/sending.h"
#include "world/handles/comms.h"
#include "world/handles/slots.h"
#include "world/native/data.h"
#include "world/native/ending.h"
#include "world/native/native.h"
#include "world/native/unlike.h"
#include "world/rendezvous/rendezvous.h"
#include "world/streams/streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A stream on which no BYE has arrived by then is abandoned: all messages have been received, because all
 * ranks have met in a barrier. */
enum { BYE_MS = 10000, REST_SECONDS = 2 };

/* This process's listener. */
static int listener = -1;
/* Whether this process has joined the world, even if the world is only this site. */
static int is_joined;

/* Other sites may wait in a queue for hours: ranks sleep while rank 0 waits for them. */
static void wait_asleep(MPI_Request *request)
{
    int flag = 0;
    while (real.Test(request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void spread(void *bytes, int count)
{
    MPI_Request request;
    if (real.Ibcast(bytes, count, handle.byte, 0, ours.site, &request) != MPI_SUCCESS)
        ending_now("the site's MPI cannot broadcast what the other sites are");
    wait_asleep(&request);
}

/* The MPI's name and version, from the first words of its version text. */
static void name_mpi(char *name, size_t room)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    real.Get_library_version(text, &length);
    text[sizeof text - 1] = '\0';
    text[strcspn(text, ",\n")] = '\0';
    static const char mpich[] = "MPICH Version:", open_mpi[] = "Open MPI v";
    const char *version = text + sizeof mpich - 1;
    if (strncmp(text, mpich, sizeof mpich - 1) == 0)
        snprintf(name, room, "MPICH %.100s", version + strspn(version, " \t"));
    else if (strncmp(text, open_mpi, sizeof open_mpi - 1) == 0)
        snprintf(name, room, "Open MPI %.100s", text + sizeof open_mpi - 1);
    else
        snprintf(name, room, "%.100s", text);
}

static uint8_t thread_level(void)
{
    int provided = MPI_THREAD_SINGLE;
    real.Query_thread(&provided);
    const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
    for (uint8_t i = 0; i < 4; i++)
        if (provided == levels[i])
            return i;
    return 0;
}

static uint32_t native_tag_ub(void)
{
    void *value;
    int flag = 0;
    real.Comm_get_attr(handle.comm_world, MPI_TAG_UB, &value, &flag);
    return flag ? (uint32_t)*(int *)value : 32767;
}

/* Native rank 0 registers its site at the rendezvous. Returns the bytes of the WORLD message. */
static unsigned char *join(int processes, const struct sockaddr_storage *addresses, size_t *n)
{
    char mpi[128], why[512];
    name_mpi(mpi, sizeof mpi);
    struct rendezvous_request request = {.mpi = mpi,
                                         .layout = data_layout(),
                                         .forms = forms_own(),
                                         .tag_ub = native_tag_ub(),
                                         .thread_level = thread_level(),
                                         .processes = (uint32_t)processes,
                                         .addresses = addresses};
    unsigned char *world;
    if (rendezvous_world(&request, &world, n, why, sizeof why))
        ending_now("%s", why);
    return world;
}

/* Every process of the site learns what its rank 0 learns from the rendezvous. */
static void learn(int rank, int processes)
{
    char why[512];
    struct sockaddr_storage mine = {0}, *all = NULL;
    listener = rendezvous_listen(&mine, why, sizeof why);
    if (listener < 0)
        ending_now("%s", why);
    if (rank == 0)
        all = calloc((size_t)processes, sizeof *all);
    real.Gather(&mine, (int)sizeof mine, handle.byte, all, (int)sizeof mine, handle.byte, 0, ours.site);
    size_t n = 0;
    unsigned char *bytes = rank == 0 ? join(processes, all, &n) : NULL;
    uint64_t length = n;
    spread(&length, (int)sizeof length);
    if (rank != 0)
        bytes = malloc(length);
    if (!bytes)
        ending_now("out of memory for the list of the world's processes");
    spread(bytes, (int)length);
    if (message_read_world(bytes, length, rendezvous_site(), (uint32_t)rank, &ours.world))
        ending_now("`causeway run` has said what this site cannot read; are both of one version?");
    free(bytes);
    free(all);
}

static void make_world(int rank)
{
    ours.engine = engine_new(ours.world.size);
    int32_t *numbers = malloc(ours.world.size * sizeof *numbers);
    int32_t *slots = calloc(ours.world.size, sizeof *slots);
    if (!ours.engine || !numbers || !slots)
        ending_now("out of memory for a world of %u processes", ours.world.size);
    if (streams_start(&ours.world, listener, ours.engine))
        ending_now("the sockets to other sites cannot be watched (epoll)");
    if (rank == 0)
        streams_watch(rendezvous_descriptor(), ending_heard);
    unlike_begin(&ours.world);
    real.Comm_dup(handle.comm_world, &ours.hidden);
    real.Comm_set_errhandler(ours.hidden, handle.errors_return);
    slots_begin(native_tag_ub());
    for (uint32_t i = 0; i < ours.world.size; i++)
        numbers[i] = (int32_t)i;
    /* All processes have the slot SLOT_OF_WORLD. */
    if (!comm_make(handle.comm_world, 0, (int)ours.world.size, numbers, slots))
        ending_now("out of memory for a world of %u processes", ours.world.size);
    free(numbers);
    free(slots);
    ours.is_on = 1;
    progress_begin();
}

static int is_spawned(void)
{
    int (*parent)(MPI_Comm *) = (int (*)(MPI_Comm *))mpi_calls_find("Comm_get_parent");
    MPI_Comm comm = handle.comm_null;
    return parent && parent(&comm) == MPI_SUCCESS && comm != handle.comm_null;
}

/* The number of processes that another MPI's launcher has started; 0 if this MPI's own launcher did. */
static int started_by_another(void)
{
#if defined(OPEN_MPI)
    const char *own = "OMPI_COMM_WORLD_SIZE", *other = "PMI_SIZE";
#else
    const char *own = "PMI_SIZE", *other = "OMPI_COMM_WORLD_SIZE";
#endif
    const char *count = getenv(other);
    return count && !getenv(own) ? atoi(count) : 0;
}

static void begin(void)
{
    char why[512];
    if (!mpi_calls_fit())
        return;
    int wanted = rendezvous_wanted(why, sizeof why), rank, processes;
    if (wanted == 0 || is_spawned())
        return;
    if (wanted < 0)
        ending_now("%s", why);
    real.Comm_rank(handle.comm_world, &rank);
    real.Comm_size(handle.comm_world, &processes);
    if (processes == 1 && started_by_another() > 1)
        ending_now(
            "each process believes that it is alone, and its launcher has started %d: the program's MPI is "
            "not that of the launcher; start it with its own MPI's mpirun",
            started_by_another());
    real.Comm_dup(handle.comm_self, &ours.self);
    real.Comm_dup(handle.comm_world, &ours.site);
    real.Comm_group(handle.comm_world, &ours.here);
    learn(rank, processes);
    is_joined = 1;
    if (ours.world.here < ours.world.size)
        make_world(rank);
    if (ours.is_on && ours.world.me == 0)
        imports_tell();
}

EXPORT int MPI_Init(int *argc, char ***argv)
{
    int status = PASS(Init, argc, argv);
    if (status == MPI_SUCCESS)
        begin();
    return status;
}
BOTH(Init);

/* The world has no locks: with several sites it provides at most MPI_THREAD_SERIALIZED. */
EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    char why[512];
    if (required > MPI_THREAD_SERIALIZED && mpi_calls_fit() && rendezvous_wanted(why, sizeof why) > 0)
        required = MPI_THREAD_SERIALIZED;
    int status = PASS(Init_thread, argc, argv, required, provided);
    if (status == MPI_SUCCESS)
        begin();
    return status;
}
BOTH(Init_thread);

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Everything that was received has been written. The rest is now written quickly, or belongs to a message
 * that nobody receives. */
static void write_rest(void)
{
    struct pace pace = {0};
    double until = seconds() + REST_SECONDS;
    while (engine_sends_wait(ours.engine) && seconds() < until)
        progress_pause(&pace);
}

/* All ranks of all sites meet in a barrier, write what is left, and send BYE, so that nobody takes the end of
 * a stream for a failure. */
static void end_world(void)
{
    struct comm *world = comm_find(handle.comm_world);
    if (basic_barrier(world->hidden) != MPI_SUCCESS)
        ending_now("the sites could not meet in MPI_Finalize");
    write_rest();
    engine_say_bye(ours.engine);
    streams_stop(BYE_MS);
    progress_end();
    tasks_end();
    ours.receives = 0;
}

EXPORT int MPI_Finalize(void)
{
    int rank = 0;
    if (ours.is_on)
        end_world();
    if (is_joined) {
        real.Comm_rank(ours.site, &rank);
        real.Barrier(ours.site);
        if (rank == 0)
            rendezvous_done();
    }
    int status = PASS(Finalize);
    ours.is_on = 0;
    return status;
}
BOTH(Finalize);

EXPORT int MPI_Abort(MPI_Comm comm, int code)
{
    char text[128];
    if (is_joined) {
        const struct process *process = &ours.world.processes[ours.world.me];
        snprintf(text, sizeof text, "rank %u at %s called MPI_Abort with code %d", ours.world.me,
                 ours.world.site_names[process->site], code);
        rendezvous_abort((uint32_t)code, text);
    }
    return PASS(Abort, comm, code);
}
BOTH(Abort);
