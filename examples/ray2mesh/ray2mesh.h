/* What the parts of the program ray2mesh share. Rays are numbered as items: events one after another, for
 * each the phases, for each the stations. */
#ifndef RAY2MESH_H
#define RAY2MESH_H

#include "mesh.h"
#include "table.h"

#include <mpi.h>

#define RAY2MESH_ERROR_BYTES 512

struct options {
    const char *model, *events, *stations, *phases, *mesh, *out;
};

/* What every rank knows before it traces rays. */
struct survey {
    struct rays_model model;
    struct rays_mesh mesh;
    struct rays_table events, stations;
    int phases;
    int phase[RAYS_PHASES];
};

/* One ray, as rank 0 gets it. */
struct ray {
    /* Seconds, s/rad, rad and km. */
    double time_s, p, distance, length_km;
    /* As PKPab; -1 if the phase has no ray to this station. */
    int32_t phase;
    /* How many cells it crosses. */
    int32_t cells;
};

/* How long a ray is in a cell: an entry of the matrix. */
struct entry {
    int64_t cell, item;
    double length_km;
};

struct entries {
    int64_t count, room;
    struct entry *entry;
};

/* options.c. Returns 0, or -1 with a sentence. */
int options_read(struct options *options, int argc, char **argv, char error[RAY2MESH_ERROR_BYTES]);

/* survey.c: rank 0 reads the files, all others get what is in them. The same answer at all ranks, the
 * sentence at rank 0. */
int survey_share(struct survey *survey, const struct options *options, MPI_Comm comm,
                 char error[RAY2MESH_ERROR_BYTES]);
int64_t survey_items(const struct survey *survey);
void survey_free(struct survey *survey);

/* trace.c: the rays, at rank 0, and the entries that this rank made. A ray that two ranks computed has
 * entries at both. The sentence is at all ranks. */
int trace_all(const struct survey *survey, MPI_Comm comm, struct ray *rays, struct entries *mine,
              char error[RAY2MESH_ERROR_BYTES]);
int entries_add(struct entries *entries, struct entry entry);
void entries_free(struct entries *entries);

/* exchange.c: each rank owns a block of cells, of one size, and gets the entries for them: by cell, then by
 * item, each once. `mine` is used up. */
int exchange(const struct rays_mesh *mesh, MPI_Comm comm, struct entries *mine, struct entries *owned,
             char error[RAY2MESH_ERROR_BYTES]);

/* output.c, at rank 0: makes the folder for what output_write writes, so that one that cannot be made is told
 * before rays are traced. */
int output_begin(const char *folder, char error[RAY2MESH_ERROR_BYTES]);

/* Writes times.csv, matrix.mtx and cells.csv into the folder, at rank 0. The same answer at all
 * ranks, the sentence at rank 0. */
int output_write(const struct survey *survey, const struct ray *rays, const struct entries *owned,
                 const char *folder, MPI_Comm comm, char error[RAY2MESH_ERROR_BYTES]);

#endif
