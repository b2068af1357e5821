#define MODULE mpi
#define HANDLE(kind) integer
#include "lists.inc"
