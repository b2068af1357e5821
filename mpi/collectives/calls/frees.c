/* The calls that free objects which operations may still use: datatypes, operations, requests, communicators.
 * Handles are read only after a check that this library fits the process's MPI, since another MPI's handles
 * may have another size. */
#define _GNU_SOURCE
#include "collectives/async/persistent.h"
#include "collectives/async/plan_lifetime.h"
#include "collectives/async/task.h"
#include "collectives/topology/hierarchy_cache.h"
#include "common/binding/export.h"

EXPORT int MPI_Type_free(MPI_Datatype *type)
{
    plan_lifetime_free_unused();
    /* For a type that must not be freed, the MPI reports the error. */
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
