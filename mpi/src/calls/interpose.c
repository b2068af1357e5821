/* The calls that begin and end: what this library is told, and what it frees. */
#define _GNU_SOURCE
#include "async/task.h"
#include "binding/delivery.h"
#include "binding/export.h"
#include "select/choice.h"
#include "topology/attributes.h"
#include "topology/sites.h"

static void begin(void)
{
    if (mpi_calls_fit())
        sites_learn();
    attributes_set();
    if (!mpi_calls_fit() || (sites_count < 2 && !choice_wants_one_site()))
        return;
    choice_learn();
    tasks_agree();
    /* So that its first collective may be one that does not wait. */
    struct hierarchy *on = hierarchy_enter(handle.comm_world);
    if (on)
        hierarchy_leave(on, MPI_SUCCESS);
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

EXPORT int MPI_Finalize(void)
{
    hierarchy_end();
    attributes_forget();
    sites_forget();
    return PASS(Finalize);
}
BOTH(Finalize);

EXPORT int MPI_Comm_free(MPI_Comm *comm)
{
    if (comm)
        hierarchy_forget(*comm);
    return PASS(Comm_free, comm);
}
BOTH(Comm_free);

EXPORT int MPI_Comm_disconnect(MPI_Comm *comm)
{
    if (comm) {
        hierarchy_finish(*comm);
        hierarchy_forget(*comm);
    }
    return PASS(Comm_disconnect, comm);
}
BOTH(Comm_disconnect);
