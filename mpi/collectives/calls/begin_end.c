/* The calls that start and end the MPI. In them this library learns what it must know, and frees what it
 * holds. */
#define _GNU_SOURCE
#include "collectives/async/completion.h"
#include "collectives/async/persistent.h"
#include "collectives/async/plan_lifetime.h"
#include "collectives/async/task.h"
#include "collectives/binding/delivery.h"
#include "collectives/select/choice.h"
#include "collectives/topology/agreement.h"
#include "collectives/topology/attributes.h"
#include "collectives/topology/hierarchy_cache.h"
#include "collectives/topology/sites.h"
#include "collectives/transfer/copies.h"
#include "common/binding/export.h"

/* If the world library tells us of a new communicator, its hierarchy is made at once: its first collective
 * may be non-blocking, and a non-blocking call must not wait for the other ranks to make one. */
static void prepare(MPI_Comm comm)
{
    struct hierarchy *on = hierarchy_enter(comm);
    if (on)
        hierarchy_leave(on, MPI_SUCCESS);
}

/* If there are already many communicators, those that the MPI still allows are left for the program:
 * collectives on further ones are not improved. */
static void prepare_new(MPI_Comm comm, int are_few)
{
    if (are_few)
        prepare(comm);
    else
        hierarchy_refuse(comm);
}

static void begin(void)
{
    struct words all = {0};
    if (mpi_calls_fit()) {
        struct word own = {.has_hooks = (unsigned char)tasks_find()};
        agreement_prepare(own.settings);
        sites_learn(&own, &all);
    }
    attributes_set();
    if (!mpi_calls_fit() || (sites_count < 2 && !settings_by_rank()))
        return;
    agreement_reach(all.were_told && all.settings_are_alike);
    tasks_allow(all.were_told ? all.all_have_hooks : tasks_ask_all());
    prepare(handle.comm_world);
    void (*on_new)(void (*)(MPI_Comm, int)) =
        (void (*)(void (*)(MPI_Comm, int)))mpi_calls_of_world("causeway_world_on_new");
    if (on_new)
        on_new(prepare_new);
}

EXPORT int MPI_Init(int *argc, char ***argv)
{
    delivery_begin();
    int status = PASS(Init, argc, argv);
    delivery_end();
    if (status == MPI_SUCCESS)
        begin();
    return status;
}
BOTH(Init);

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    delivery_begin();
    int status = PASS(Init_thread, argc, argv, required, provided);
    delivery_end();
    if (status == MPI_SUCCESS)
        begin();
    return status;
}
BOTH(Init_thread);

#if !defined(OPEN_MPI)
/* These calls, too, make MPICH read its settings. */
EXPORT int MPI_T_init_thread(int required, int *provided)
{
    delivery_settings_are_read();
    OTHER("T_init_thread", (int, int *), required, provided);
}
BOTH(T_init_thread);

#if MPI_VERSION >= 4
EXPORT int MPI_Session_init(MPI_Info info, MPI_Errhandler errors, MPI_Session *session)
{
    delivery_settings_are_read();
    OTHER("Session_init", (MPI_Info, MPI_Errhandler, MPI_Session *), info, errors, session);
}
BOTH(Session_init);
#endif
#endif

static void end(void)
{
    if (!hierarchy_wanted())
        return;
    tasks_finish_all();
    persistent_end();
    plan_lifetime_free_unused();
    hierarchies_forget();
    copies_reap(1);
    tasks_end();
    completions_end();
    hierarchies_end();
    choice_forget();
}

EXPORT int MPI_Finalize(void)
{
    end();
    attributes_forget();
    sites_forget();
    return PASS(Finalize);
}
BOTH(Finalize);
