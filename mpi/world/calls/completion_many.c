/* Completion of several requests. */
#define _GNU_SOURCE
#include "world/calls/check.h"
#include "world/calls/kept.h"
#include "world/native/progress.h"

static MPI_Status *status_at(MPI_Status statuses[], int i)
{
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

static int wait_one(MPI_Request *request, MPI_Status *status)
{
    struct pace pace = {0};
    int flag = 0, error;
    while ((error = real.Test(request, &flag, status)) == MPI_SUCCESS && !flag)
        progress_pause(&pace);
    return error;
}

/* Waits for one after the other: MPI_Testall of MPICH 4.0.2 never finds all complete if its own persistent
 * collective operations are among them. */
static int wait_all(int count, MPI_Request requests[], MPI_Status statuses[])
{
    if (progress_may_block())
        return PASS(Waitall, count, requests, statuses);
    int failed = 0;
    for (int i = 0; i < count; i++) {
        int error = wait_one(&requests[i], status_at(statuses, i));
        for (int k = 0; error != MPI_SUCCESS && !failed && k < i && statuses != MPI_STATUSES_IGNORE; k++)
            statuses[k].MPI_ERROR = MPI_SUCCESS;
        failed = failed || error != MPI_SUCCESS;
        if (failed && statuses != MPI_STATUSES_IGNORE)
            statuses[i].MPI_ERROR = error;
    }
    return failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}

/* Which of several requests have failed. */
struct failures {
    struct comm *of;
    int any;
};

/* Entry k of the statuses belongs to request i. The MPI has reported no errors, so our first error sets the
 * error fields of all. */
static void complete(struct keeping *keeping, int i, MPI_Status statuses[], int k, int statuses_count,
                     struct failures *failures)
{
    struct comm *of = NULL;
    int error = kept_completes(keeping, i, status_at(statuses, k), &of);
    if (error == MPI_SUCCESS)
        return;
    for (int other = 0; !failures->any && other < statuses_count && statuses != MPI_STATUSES_IGNORE; other++)
        statuses[other].MPI_ERROR = MPI_SUCCESS;
    failures->any = 1;
    if (statuses != MPI_STATUSES_IGNORE)
        statuses[k].MPI_ERROR = error;
    if (of && !failures->of)
        failures->of = of;
    else if (of)
        comm_release(of);
}

static int raise(struct failures *failures, int error)
{
    if (failures->any)
        error = MPI_ERR_IN_STATUS;
    if (failures->of) {
        comm_error(failures->of, error);
        comm_release(failures->of);
    }
    return error;
}

/* All requests have completed or, after an error of the MPI, those that are MPI_REQUEST_NULL. */
static int all_completed(struct keeping *keeping, int count, MPI_Request requests[], MPI_Status statuses[],
                         int error)
{
    struct failures failures = {0};
    for (int i = 0; i < count; i++)
        if (error == MPI_SUCCESS || requests[i] == handle.request_null)
            complete(keeping, i, statuses, i, error == MPI_SUCCESS ? count : 0, &failures);
    keep_end(keeping);
    return raise(&failures, error);
}

/* Whether the call lacks a list, or a place for the result; then it is passed to the MPI, which refuses
 * it. */
static int is_wrong(int count, const MPI_Request *requests, const void *result)
{
    return count < 0 || (count > 0 && !requests) || !result;
}

EXPORT int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    struct keeping keeping;
    if (count < 0 || (count > 0 && !requests))
        return PASS(Waitall, count, requests, statuses);
    if (!keep(&keeping, count, requests))
        return wait_all(count, requests, statuses);
    return all_completed(&keeping, count, requests, statuses, wait_all(count, requests, statuses));
}
BOTH(Waitall);

EXPORT int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    struct keeping keeping;
    if (is_wrong(count, requests, flag))
        return PASS(Testall, count, requests, flag, statuses);
    progress_if_needed();
    if (!keep(&keeping, count, requests))
        return PASS(Testall, count, requests, flag, statuses);
    int error = real.Testall(count, requests, flag, statuses);
    if (error == MPI_SUCCESS && *flag)
        return all_completed(&keeping, count, requests, statuses, error);
    keep_end(&keeping);
    return error;
}
BOTH(Testall);

static int one_completed(struct keeping *keeping, int index, MPI_Status *status, int error)
{
    struct comm *of = NULL;
    if (error == MPI_SUCCESS && index != MPI_UNDEFINED)
        error = kept_completes(keeping, index, status, &of);
    if (of && error != MPI_SUCCESS) {
        comm_error(of, error);
        comm_release(of);
    }
    keep_end(keeping);
    return error;
}

static int wait_any(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    if (progress_may_block())
        return PASS(Waitany, count, requests, index, status);
    struct pace pace = {0};
    int flag = 0, error;
    while ((error = real.Testany(count, requests, index, &flag, status)) == MPI_SUCCESS && !flag)
        progress_pause(&pace);
    return error;
}

EXPORT int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    struct keeping keeping;
    if (is_wrong(count, requests, index))
        return PASS(Waitany, count, requests, index, status);
    if (!keep(&keeping, count, requests))
        return wait_any(count, requests, index, status);
    int error = wait_any(count, requests, index, status);
    return one_completed(&keeping, *index, status, error);
}
BOTH(Waitany);

EXPORT int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    struct keeping keeping;
    if (is_wrong(count, requests, flag && index ? flag : NULL))
        return PASS(Testany, count, requests, index, flag, status);
    progress_if_needed();
    if (!keep(&keeping, count, requests))
        return PASS(Testany, count, requests, index, flag, status);
    int error = real.Testany(count, requests, index, flag, status);
    return one_completed(&keeping, *flag ? *index : MPI_UNDEFINED, status, error);
}
BOTH(Testany);

static int wait_some(int count, MPI_Request requests[], int *out, int indices[], MPI_Status statuses[])
{
    if (progress_may_block())
        return PASS(Waitsome, count, requests, out, indices, statuses);
    struct pace pace = {0};
    int error;
    while ((error = real.Testsome(count, requests, out, indices, statuses)) == MPI_SUCCESS && *out == 0)
        progress_pause(&pace);
    return error;
}

static int some_completed(struct keeping *keeping, int out, const int indices[], MPI_Status statuses[],
                          int error)
{
    struct failures failures = {0};
    for (int k = 0; k < out && out != MPI_UNDEFINED; k++)
        complete(keeping, indices[k], statuses, k, error == MPI_SUCCESS ? out : 0, &failures);
    keep_end(keeping);
    return raise(&failures, error);
}

EXPORT int MPI_Waitsome(int count, MPI_Request requests[], int *out, int indices[], MPI_Status statuses[])
{
    struct keeping keeping;
    if (is_wrong(count, requests, out))
        return PASS(Waitsome, count, requests, out, indices, statuses);
    if (!keep(&keeping, count, requests))
        return wait_some(count, requests, out, indices, statuses);
    int error = wait_some(count, requests, out, indices, statuses);
    return some_completed(&keeping, *out, indices, statuses, error);
}
BOTH(Waitsome);

EXPORT int MPI_Testsome(int count, MPI_Request requests[], int *out, int indices[], MPI_Status statuses[])
{
    struct keeping keeping;
    if (is_wrong(count, requests, out))
        return PASS(Testsome, count, requests, out, indices, statuses);
    progress_if_needed();
    if (!keep(&keeping, count, requests))
        return PASS(Testsome, count, requests, out, indices, statuses);
    int error = real.Testsome(count, requests, out, indices, statuses);
    return some_completed(&keeping, *out, indices, statuses, error);
}
BOTH(Testsome);
