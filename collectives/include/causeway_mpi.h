/* What a program may say to be told of the sites it runs on. Constants only: nothing to link, and nothing changes without
 * Causeway, where such a communicator is MPI_COMM_NULL or, by the MPI, the whole.
 *
 *     MPI_Info_set(info, "mpi_hw_resource_type", CAUSEWAY_RESOURCE_SITE);
 *     MPI_Comm_split_type(comm, MPI_COMM_TYPE_HW_GUIDED, key, info, &site);
 */
#ifndef CAUSEWAY_MPI_H
#define CAUSEWAY_MPI_H

/* The ranks of one site, for MPI_COMM_TYPE_HW_GUIDED and MPI_COMM_TYPE_RESOURCE_GUIDED (MPI 4.0, section 7.4.2). "cluster", which Open MPI and
 * others know too, means the same. */
#define CAUSEWAY_RESOURCE_SITE "causeway:site"

#endif
