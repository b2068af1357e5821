/* Persistent requests of collective operations, and handles that the program frees while operations use them. */
#ifndef CAUSEWAY_PERSISTENT_H
#define CAUSEWAY_PERSISTENT_H

/* In MPI_Finalize. */
void persistent_end(void);

#endif
