/* Messages with large counts. */
#define _GNU_SOURCE
#include "world/calls/large.h"

#define SEND(Name) \
    LARGE(Name, Send, comm, (buffer, n, type, to, tag, comm), int n = large_count(&large, count, &type))
#define SEND_REQUEST(Name)                                            \
    LARGE_REQUEST(Name, Send, comm, (buffer, n, type, to, tag, comm), \
                  int n = large_count(&large, count, &type))
SEND(Send)
SEND(Ssend)
SEND(Rsend)
SEND(Bsend)
SEND_REQUEST(Isend)
SEND_REQUEST(Issend)
SEND_REQUEST(Irsend)
SEND_REQUEST(Ibsend)
SEND_REQUEST(Send_init)
SEND_REQUEST(Ssend_init)
SEND_REQUEST(Rsend_init)
SEND_REQUEST(Bsend_init)

LARGE_STATUS(Recv, Receive, comm, (buffer, n, type, source, tag, comm),
             int n = large_count(&large, count, &type))
LARGE_REQUEST(Irecv, Receive, comm, (buffer, n, type, source, tag, comm),
              int n = large_count(&large, count, &type))
LARGE_REQUEST(Recv_init, Receive, comm, (buffer, n, type, source, tag, comm),
              int n = large_count(&large, count, &type))
LARGE_STATUS(Mrecv, Matched, handle.comm_world, (buffer, n, type, message),
             int n = large_count(&large, count, &type))
LARGE_REQUEST(Imrecv, Matched, handle.comm_world, (buffer, n, type, message),
              int n = large_count(&large, count, &type))

LARGE_STATUS(Sendrecv, Exchange, comm, (buffer, n, type, to, tag, into, m, into_type, source, into_tag, comm),
             int n = large_count(&large, count, &type), m = large_count(&large, into_count, &into_type))
LARGE_REQUEST(Isendrecv, Exchange, comm,
              (buffer, n, type, to, tag, into, m, into_type, source, into_tag, comm),
              int n = large_count(&large, count, &type), m = large_count(&large, into_count, &into_type))
LARGE_STATUS(Sendrecv_replace, Replace, comm, (buffer, n, type, to, tag, source, into_tag, comm),
             int n = large_count(&large, count, &type))
LARGE_REQUEST(Isendrecv_replace, Replace, comm, (buffer, n, type, to, tag, source, into_tag, comm),
              int n = large_count(&large, count, &type))
