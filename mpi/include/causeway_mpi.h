/* Constants with which a program asks for the sites on which it runs; see docs/topology.md. There is nothing
 * to link. Without Causeway none of the keys exists, which means one site.
 *
 *     MPI_Comm_get_info(MPI_COMM_WORLD, &info);
 *     MPI_Info_get(info, CAUSEWAY_INFO_SITE, sizeof name - 1, name, &is_there);
 *
 *     MPI_Info_set(info, "mpi_hw_resource_type", CAUSEWAY_RESOURCE_SITE);
 *     MPI_Comm_split_type(comm, MPI_COMM_TYPE_HW_GUIDED, key, info, &site); */
#ifndef CAUSEWAY_MPI_H
#define CAUSEWAY_MPI_H

/* The ranks of one site, for MPI_COMM_TYPE_HW_GUIDED (MPI 4.0, section 7.4.2) and
 * MPI_COMM_TYPE_RESOURCE_GUIDED (MPI 4.1). "cluster", which Open MPI and others also know, has the same
 * meaning. */
#define CAUSEWAY_RESOURCE_SITE "causeway:site"

/* The ranks of one group of the job's profile (causeway run --groups). Ranks of no group get
 * MPI_COMM_NULL. */
#define CAUSEWAY_RESOURCE_GROUP "causeway:group"

/* Keys of the info object that MPI_Comm_get_info returns for MPI_COMM_WORLD: the process's site, the number
 * of the job's sites, and the process's group, if it is in one. Names have up to 63 characters. */
#define CAUSEWAY_INFO_SITE "causeway:site"
#define CAUSEWAY_INFO_SITES "causeway:sites"
#define CAUSEWAY_INFO_GROUP "causeway:group"

/* Two more keys. Their values are keyvals, as decimal numbers, of two attributes of MPI_COMM_WORLD and of its
 * duplicates. The first attribute is an int * to the number of levels of each rank. The second is an int **
 * to the colours of each rank, colors[rank][level]: ranks with the same colour are at the same place. */
#define CAUSEWAY_INFO_DEPTHS_KEYVAL "causeway:depths_keyval"
#define CAUSEWAY_INFO_COLORS_KEYVAL "causeway:colors_keyval"

/* The levels. All ranks have the same colour at the first. Sites are numbered by their lowest ranks, and so
 * are hosts, over all sites. */
#define CAUSEWAY_LEVEL_GRID 0
#define CAUSEWAY_LEVEL_SITE 1
#define CAUSEWAY_LEVEL_HOST 2

#endif
