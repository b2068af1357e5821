/* Attributes of MPI_COMM_WORLD that say where each rank is, in the manner of MPICH-G2: the number of levels
 * of each rank (int *), and for each rank its colour at each level (int **). Ranks of one colour at a level
 * are at one place of that level. */
#ifndef CAUSEWAY_ATTRIBUTES_H
#define CAUSEWAY_ATTRIBUTES_H

/* Puts the attributes there, on this process alone, once sites have been learnt. Does nothing where sites are
 * not known. */
void attributes_set(void);

/* Whether they are there, and by which keys of MPI_Comm_get_attr a program finds them. */
int attributes_keyvals(int *depths, int *colors);

void attributes_forget(void);

#endif
