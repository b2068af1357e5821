/* statuses: requests that are asked whether they are complete, and stay: from ranks here and of other sites,
 * persistent ones among them. Whoever asks is told the source by its rank in the communicator. */
#include "world_test.h"

enum { MOST = 64 };

#define HAS_LISTS (MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1))

static MPI_Request requests[MOST];
static int got[MOST];

/* Request i receives from rank i, and stays what it was. */
static void check(int i, const MPI_Status *status, const MPI_Request *before)
{
    int count;
    MPI_Get_count(status, MPI_INT, &count);
    CHECK(status->MPI_SOURCE == i && status->MPI_TAG == 7 && count == 1);
    CHECK(requests[i] == *before && got[i] == 100 * i);
}

static void one_by_one(const MPI_Request *before)
{
    for (int i = 0; i < size; i++) {
        MPI_Status status;
        int flag = 0;
        while (!flag)
            MPI_Request_get_status(requests[i], &flag, &status);
        check(i, &status, &before[i]);
    }
}

#if HAS_LISTS
static void several_at_once(const MPI_Request *before)
{
    MPI_Status statuses[MOST];
    int flag = 0, index = -1, indices[MOST], out = 0;
    MPI_Request_get_status_all(size, requests, &flag, statuses);
    CHECK(flag);
    for (int i = 0; flag && i < size; i++)
        check(i, &statuses[i], &before[i]);
    MPI_Request_get_status_any(size, requests, &index, &flag, statuses);
    CHECK(flag && index >= 0 && index < size);
    if (!wrong)
        check(index, statuses, &before[index]);
    MPI_Request_get_status_some(size, requests, &out, indices, statuses);
    CHECK(out == size);
    for (int k = 0; k < out && !wrong; k++)
        check(indices[k], &statuses[k], &before[indices[k]]);
    MPI_Request_get_status_all(size, requests, &flag, MPI_STATUSES_IGNORE);
    CHECK(flag);
}
#endif

static void begin_all(int are_persistent)
{
    for (int i = 0; i < size; i++) {
        got[i] = -1;
        if (are_persistent) {
            MPI_Recv_init(&got[i], 1, MPI_INT, i, 7, MPI_COMM_WORLD, &requests[i]);
            MPI_Start(&requests[i]);
        } else {
            MPI_Irecv(&got[i], 1, MPI_INT, i, 7, MPI_COMM_WORLD, &requests[i]);
        }
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    CHECK(size <= MOST);
    for (int are_persistent = 0; are_persistent < 2 && !wrong; are_persistent++) {
        MPI_Request before[MOST];
        MPI_Status statuses[MOST];
        int mine = 100 * rank;
        begin_all(are_persistent);
        memcpy(before, requests, sizeof before);
        for (int to = 0; to < size; to++)
            MPI_Send(&mine, 1, MPI_INT, to, 7, MPI_COMM_WORLD);
        one_by_one(before);
#if HAS_LISTS
        several_at_once(before);
#endif
        MPI_Waitall(size, requests, statuses);
        for (int i = 0; i < size; i++) {
            CHECK(statuses[i].MPI_SOURCE == i);
            CHECK((requests[i] == MPI_REQUEST_NULL) == !are_persistent);
            if (are_persistent)
                MPI_Request_free(&requests[i]);
        }
    }
    return end("statuses");
}
