#define MODULE mpi_f08
#define HANDLE(kind) type(kind)
#undef INIT
#include "lists.inc"
