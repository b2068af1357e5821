/* What the MPI says of where ranks are, by the calls of docs/topology.md. Nothing here communicates. */
#ifndef CAUSEWAY_PLACES_H
#define CAUSEWAY_PLACES_H

#include <mpi.h>

/* A name has up to 63 letters, a keyval ten digits. */
#define PLACES_TEXT_BYTES 64

/* This process's value of a key of MPI_COMM_WORLD's info object, with zeros behind it; all zeros where the
 * key is not there. */
void places_told(const char *key, char value[PLACES_TEXT_BYTES]);

/* Fills color with a colour for each rank of a communicator at a level, such as CAUSEWAY_LEVEL_SITE, numbered
 * from 0 by the lowest rank of each. Ranks of another MPI_COMM_WORLD are one more place. Gives the number of
 * colours; 0 where the MPI does not say places, -1 where there is no memory. */
int places_colors(MPI_Comm comm, int level, int *color);

#endif
