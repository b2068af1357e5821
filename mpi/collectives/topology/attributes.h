/* Attributes of MPI_COMM_WORLD that say where each rank is, as in MPICH-G2: the number of levels of each rank
 * (int *), and each rank's colour at each level (int **). Ranks with the same colour at a level are at the
 * same place on that level. */
#ifndef CAUSEWAY_ATTRIBUTES_H
#define CAUSEWAY_ATTRIBUTES_H

/* Sets the attributes, locally, after sites_learn. Does nothing if the sites are not known. */
void attributes_set(void);

/* Whether the attributes are set, and the keys by which a program gets them with MPI_Comm_get_attr. */
int attributes_keyvals(int *depths, int *colors);

void attributes_forget(void);

#endif
