/* Messages with large counts. */
#define _GNU_SOURCE
#include "world/calls/large.h"

LARGE(Send, comm, (const void *buffer, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm),
      (buffer, count, type, to, tag, comm), (buffer, n, type, to, tag, comm),
      int n = large_count(&large, count, &type))
LARGE(Ssend, comm, (const void *buffer, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm),
      (buffer, count, type, to, tag, comm), (buffer, n, type, to, tag, comm),
      int n = large_count(&large, count, &type))
LARGE(Rsend, comm, (const void *buffer, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm),
      (buffer, count, type, to, tag, comm), (buffer, n, type, to, tag, comm),
      int n = large_count(&large, count, &type))
LARGE(Bsend, comm, (const void *buffer, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm),
      (buffer, count, type, to, tag, comm), (buffer, n, type, to, tag, comm),
      int n = large_count(&large, count, &type))
LARGE(Isend, comm,
      (const void *buffer, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
       MPI_Request *request),
      (buffer, count, type, to, tag, comm, request), (buffer, n, type, to, tag, comm, request),
      int n = large_count(&large, count, &type))
LARGE(Issend, comm,
      (const void *buffer, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
       MPI_Request *request),
      (buffer, count, type, to, tag, comm, request), (buffer, n, type, to, tag, comm, request),
      int n = large_count(&large, count, &type))
LARGE(Irsend, comm,
      (const void *buffer, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
       MPI_Request *request),
      (buffer, count, type, to, tag, comm, request), (buffer, n, type, to, tag, comm, request),
      int n = large_count(&large, count, &type))
LARGE(Ibsend, comm,
      (const void *buffer, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
       MPI_Request *request),
      (buffer, count, type, to, tag, comm, request), (buffer, n, type, to, tag, comm, request),
      int n = large_count(&large, count, &type))
LARGE(Send_init, comm,
      (const void *buffer, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
       MPI_Request *request),
      (buffer, count, type, to, tag, comm, request), (buffer, n, type, to, tag, comm, request),
      int n = large_count(&large, count, &type))
LARGE(Ssend_init, comm,
      (const void *buffer, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
       MPI_Request *request),
      (buffer, count, type, to, tag, comm, request), (buffer, n, type, to, tag, comm, request),
      int n = large_count(&large, count, &type))
LARGE(Rsend_init, comm,
      (const void *buffer, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
       MPI_Request *request),
      (buffer, count, type, to, tag, comm, request), (buffer, n, type, to, tag, comm, request),
      int n = large_count(&large, count, &type))
LARGE(Bsend_init, comm,
      (const void *buffer, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
       MPI_Request *request),
      (buffer, count, type, to, tag, comm, request), (buffer, n, type, to, tag, comm, request),
      int n = large_count(&large, count, &type))
LARGE(Recv, comm,
      (void *buffer, MPI_Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
       MPI_Status *status),
      (buffer, count, type, from, tag, comm, status), (buffer, n, type, from, tag, comm, status),
      int n = large_count(&large, count, &type))
LARGE(Irecv, comm,
      (void *buffer, MPI_Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
       MPI_Request *request),
      (buffer, count, type, from, tag, comm, request), (buffer, n, type, from, tag, comm, request),
      int n = large_count(&large, count, &type))
LARGE(Recv_init, comm,
      (void *buffer, MPI_Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
       MPI_Request *request),
      (buffer, count, type, from, tag, comm, request), (buffer, n, type, from, tag, comm, request),
      int n = large_count(&large, count, &type))
LARGE(Mrecv, handle.comm_world,
      (void *buffer, MPI_Count count, MPI_Datatype type, MPI_Message *message, MPI_Status *status),
      (buffer, count, type, message, status), (buffer, n, type, message, status),
      int n = large_count(&large, count, &type))
LARGE(Imrecv, handle.comm_world,
      (void *buffer, MPI_Count count, MPI_Datatype type, MPI_Message *message, MPI_Request *request),
      (buffer, count, type, message, request), (buffer, n, type, message, request),
      int n = large_count(&large, count, &type))
LARGE(Sendrecv, comm,
      (const void *out, MPI_Count out_count, MPI_Datatype out_type, int to, int out_tag, void *in,
       MPI_Count in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status *status),
      (out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status),
      (out, n, out_type, to, out_tag, in, m, in_type, from, in_tag, comm, status),
      int n = large_count(&large, out_count, &out_type), m = large_count(&large, in_count, &in_type))
LARGE(Isendrecv, comm,
      (const void *out, MPI_Count out_count, MPI_Datatype out_type, int to, int out_tag, void *in,
       MPI_Count in_count, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Request *request),
      (out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, request),
      (out, n, out_type, to, out_tag, in, m, in_type, from, in_tag, comm, request),
      int n = large_count(&large, out_count, &out_type), m = large_count(&large, in_count, &in_type))
LARGE(Sendrecv_replace, comm,
      (void *buffer, MPI_Count count, MPI_Datatype type, int to, int out_tag, int from, int in_tag,
       MPI_Comm comm, MPI_Status *status),
      (buffer, count, type, to, out_tag, from, in_tag, comm, status),
      (buffer, n, type, to, out_tag, from, in_tag, comm, status), int n = large_count(&large, count, &type))
LARGE(Isendrecv_replace, comm,
      (void *buffer, MPI_Count count, MPI_Datatype type, int to, int out_tag, int from, int in_tag,
       MPI_Comm comm, MPI_Request *request),
      (buffer, count, type, to, out_tag, from, in_tag, comm, request),
      (buffer, n, type, to, out_tag, from, in_tag, comm, request), int n = large_count(&large, count, &type))
