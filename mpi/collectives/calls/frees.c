/* The calls that free what operations may still use: datatypes, operations, requests, communicators. Where
 * the MPI is another one its handles may be of another size. */
#define _GNU_SOURCE
#include "collectives/async/persistent.h"
#include "collectives/async/plan_lifetime.h"
#include "collectives/async/task.h"
#include "collectives/topology/hierarchy_cache.h"
#include "common/binding/export.h"

EXPORT int MPI_Type_free(MPI_Datatype *type)
{
    plan_lifetime_free_unused();
    /* Where a type may not be freed, the MPI complains. */
    if (type && plan_lifetime_any() && !type_is_named(*type) && plan_lifetime_puts_off_type(*type)) {
        *type = handle.datatype_null;
        return MPI_SUCCESS;
    }
    return PASS(Type_free, type);
}
BOTH(Type_free);

EXPORT int MPI_Op_free(MPI_Op *op)
{
    plan_lifetime_free_unused();
    if (op && plan_lifetime_any() && *op != handle.op_null && plan_lifetime_puts_off_op(*op)) {
        *op = handle.op_null;
        return MPI_SUCCESS;
    }
    return PASS(Op_free, op);
}
BOTH(Op_free);

EXPORT int MPI_Request_free(MPI_Request *request)
{
    if (request && persistent_any())
        persistent_free(*request);
    return PASS(Request_free, request);
}
BOTH(Request_free);

EXPORT int MPI_Comm_free(MPI_Comm *comm)
{
    if (comm && mpi_calls_fit())
        hierarchy_forget(*comm);
    return PASS(Comm_free, comm);
}
BOTH(Comm_free);

EXPORT int MPI_Comm_disconnect(MPI_Comm *comm)
{
    if (comm && mpi_calls_fit()) {
        struct hierarchy *on = hierarchy_carried(*comm);
        if (on)
            tasks_finish(on);
        hierarchy_forget(*comm);
    }
    return PASS(Comm_disconnect, comm);
}
BOTH(Comm_disconnect);
