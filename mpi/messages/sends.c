/* Point-to-point messages. */
#define _GNU_SOURCE
#include "messages/counting.h"

#include "messages/requests.h"

static void message(const char *call, int64_t count, MPI_Datatype type, int to, MPI_Comm comm)
{
    if (to != MPI_PROC_NULL)
        counts_add(call, peers_rank(comm, to), 0, peers_bytes(count, type));
}

#define MESSAGE(Name) message(#Name, count, type, to, comm)

BOTH_COUNTS(Send, Send, MESSAGE(Send));
BOTH_COUNTS(Bsend, Send, MESSAGE(Bsend));
BOTH_COUNTS(Ssend, Send, MESSAGE(Ssend));
BOTH_COUNTS(Rsend, Send, MESSAGE(Rsend));
BOTH_COUNTS_REQUEST(Isend, Send, MESSAGE(Isend));
BOTH_COUNTS_REQUEST(Ibsend, Send, MESSAGE(Ibsend));
BOTH_COUNTS_REQUEST(Issend, Send, MESSAGE(Issend));
BOTH_COUNTS_REQUEST(Irsend, Send, MESSAGE(Irsend));
BOTH_COUNTS_STATUS(Sendrecv, Exchange, MESSAGE(Sendrecv));
BOTH_COUNTS_STATUS(Sendrecv_replace, Replace, MESSAGE(Sendrecv_replace));
/* Open MPI 5 has these, but the header with which the library for both versions is built does not. */
BOTH_COUNTS_REQUEST(Isendrecv, Exchange, MESSAGE(Isendrecv));
BOTH_COUNTS_REQUEST(Isendrecv_replace, Replace, MESSAGE(Isendrecv_replace));

/* A persistent send is counted each time it is started. */
static void keep(const char *call, int64_t count, MPI_Datatype type, int to, MPI_Comm comm,
                 MPI_Request request)
{
    if (counting_is_on() && to != MPI_PROC_NULL)
        requests_keep(request, call, peers_rank(comm, to), peers_bytes(count, type));
}

#define CALL_INIT(text, PARAMETERS, ...)                   \
    do {                                                   \
        static int(*own) PARAMETERS;                       \
        if (!own)                                          \
            own = (int(*) PARAMETERS)mpi_calls_find(text); \
        int status = own ? own(__VA_ARGS__) : NO_MPI;      \
        if (status == MPI_SUCCESS)                         \
            keep(text, count, type, to, comm, *request);   \
        return status;                                     \
    } while (0)

#define PERSISTENT(Name)                                                               \
    EXPORT int MPI_##Name(PARAMETERS(Send), MPI_Request *request)                      \
    {                                                                                  \
        CALL_INIT(#Name, (PARAMETERS(Send), MPI_Request *), ARGUMENTS(Send), request); \
    }                                                                                  \
    BOTH(Name)
PERSISTENT(Send_init);
PERSISTENT(Bsend_init);
PERSISTENT(Ssend_init);
PERSISTENT(Rsend_init);

#if MPI_VERSION >= 4
#define PERSISTENT_LARGE(Name)                                                                    \
    EXPORT int MPI_##Name##_c(LARGE_PARAMETERS(Send), MPI_Request *request)                       \
    {                                                                                             \
        CALL_INIT(#Name "_c", (LARGE_PARAMETERS(Send), MPI_Request *), ARGUMENTS(Send), request); \
    }                                                                                             \
    BOTH(Name##_c)
PERSISTENT_LARGE(Send_init);
PERSISTENT_LARGE(Bsend_init);
PERSISTENT_LARGE(Ssend_init);
PERSISTENT_LARGE(Rsend_init);
#endif

EXPORT int MPI_Start(MPI_Request *request)
{
    if (counting_is_on())
        requests_started(*request);
    return PASS(Start, request);
}
BOTH(Start);

EXPORT int MPI_Startall(int count, MPI_Request requests[])
{
    for (int i = 0; counting_is_on() && i < count; i++)
        requests_started(requests[i]);
    return PASS(Startall, count, requests);
}
BOTH(Startall);

EXPORT int MPI_Request_free(MPI_Request *request)
{
    if (counting_is_on())
        requests_forget(*request);
    return PASS(Request_free, request);
}
BOTH(Request_free);
