/* The second phase: all ranks trace rays, as the workers library gives them out. A ray's times go to rank 0;
 * its pieces in the cells stay where they were computed until the exchange. */
#include "causeway_workers.h"
#include "ray2mesh.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Points of a ray are at most so far from each other. A chord of 20 km is 2e-6 shorter than an arc of the
 * least radius of curvature in the mantle, about 2000 km. */
#define STEP_KM 20.0

/* Items of a block, at most: stations of one event and one phase, which share a search. */
#define BLOCK_ITEMS_MOST 256

struct tracer {
    const struct survey *survey;
    /* The last search: another station mostly needs the same. */
    int has_search;
    double depth_km;
    struct rays_search search;
    struct rays_path path;
    struct rays_pieces pieces;
    struct entries *mine;
};

static int prepare(struct tracer *tracer, int phase, double depth_km)
{
    if (tracer->has_search && (int)tracer->search.phase == phase && tracer->depth_km == depth_km)
        return 0;
    if (tracer->has_search)
        rays_search_free(&tracer->search);
    tracer->has_search = 0;
    if (rays_search_make(&tracer->search, &tracer->survey->model, phase, depth_km))
        return -1;
    tracer->has_search = 1;
    tracer->depth_km = depth_km;
    return 0;
}

static int store_pieces(struct tracer *tracer, int64_t item, struct ray *ray)
{
    ray->cells = tracer->pieces.count;
    for (int i = 0; i < tracer->pieces.count; i++) {
        const struct rays_piece_of_ray *piece = &tracer->pieces.piece[i];
        ray->length_km += piece->length_km;
        if (entries_add(tracer->mine, (struct entry){piece->cell, item, piece->length_km}))
            return -1;
    }
    return 0;
}

static int trace(const struct causeway_workers_item *item, void *context)
{
    struct tracer *tracer = context;
    const struct survey *survey = tracer->survey;
    int64_t pair = item->index / survey->stations.sites;
    const struct rays_site *event = &survey->events.site[pair / survey->phases];
    const struct rays_site *station = &survey->stations.site[item->index % survey->stations.sites];
    struct ray *ray = item->result;
    struct rays_arrival arrival;
    struct rays_place from = rays_place_at(event->latitude, event->longitude);
    struct rays_place to = rays_place_at(station->latitude, station->longitude);
    ray->phase = -1;
    ray->distance = rays_place_distance(from, to);
    if (prepare(tracer, survey->phase[pair % survey->phases], event->depth_km))
        return 1;
    if (rays_search_find(&tracer->search, ray->distance, &arrival, 1) == 0)
        return 0;
    ray->phase = rays_phase_named(arrival.name);
    ray->time_s = arrival.time_s;
    ray->p = arrival.p;
    struct rays_circle circle = rays_circle_make(from, to, arrival.distance > M_PI);
    if (rays_path_make(&tracer->path, &tracer->search, &arrival, STEP_KM) ||
        rays_mesh_trace(&survey->mesh, &tracer->path, &circle, &tracer->pieces))
        return 1;
    return store_pieces(tracer, item->index, ray);
}

/* All ranks get rank 0's answer, or the job ends: the entries of a rank that is lost, or does not answer, are
 * gone. These are messages to each rank, since an MPI that goes on without a rank does no collective
 * operation on such a communicator. */
static int agree(int status, MPI_Comm comm)
{
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    if (rank) {
        MPI_Recv(&status, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
        return status;
    }
    if (status == CAUSEWAY_WORKERS_SILENT || status == CAUSEWAY_WORKERS_MPI) {
        fprintf(stderr, "ray2mesh: a rank was lost, and the pieces of rays that it had: %s\n",
                causeway_workers_error());
        /* A launcher that kills all ranks at once may lose what was printed right before. */
        sleep(1);
        MPI_Abort(comm, 1);
    }
    for (int other = 1; other < ranks; other++)
        MPI_Send(&status, 1, MPI_INT, other, 0, comm);
    return status;
}

/* How many phases have a ray to their station. */
static int64_t count_rays(const struct ray *rays, int64_t items)
{
    int64_t count = 0;
    for (int64_t i = 0; i < items; i++)
        count += rays[i].phase >= 0;
    return count;
}

int trace_all(const struct survey *survey, MPI_Comm comm, struct ray *rays, struct entries *mine,
              char error[RAY2MESH_ERROR_BYTES])
{
    struct tracer tracer = {.survey = survey, .mine = mine};
    struct causeway_workers job;
    int rank;
    MPI_Comm_rank(comm, &rank);
    causeway_workers_init(&job);
    job.items = survey_items(survey);
    job.compute = trace;
    job.context = &tracer;
    job.result_bytes = sizeof *rays;
    job.results = rays;
    job.block_items = survey->stations.sites < BLOCK_ITEMS_MOST ? survey->stations.sites : BLOCK_ITEMS_MOST;
    double begun = MPI_Wtime();
    int status = agree(causeway_workers_run(comm, &job), comm);
    if (status)
        snprintf(error, RAY2MESH_ERROR_BYTES, "%s", causeway_workers_error());
    else if (rank == 0)
        fprintf(stderr,
                "ray2mesh: %" PRId64 " rays of %" PRId64 " looked for, %s, %.3f s; rank 0 exchanged %" PRId64
                " messages, %" PRId64 " with other groups\n",
                count_rays(rays, job.items), job.items, job.is_hierarchical ? "a boss a group" : "one boss",
                MPI_Wtime() - begun, job.messages_received + job.messages_sent, job.messages_far);
    if (tracer.has_search)
        rays_search_free(&tracer.search);
    rays_path_free(&tracer.path);
    free(tracer.pieces.piece);
    return status ? -1 : 0;
}

int entries_add(struct entries *entries, struct entry entry)
{
    if (entries->count == entries->room) {
        int64_t room = entries->room ? 2 * entries->room : 4096;
        struct entry *more = realloc(entries->entry, room * sizeof *more);
        if (!more)
            return -1;
        entries->entry = more;
        entries->room = room;
    }
    entries->entry[entries->count++] = entry;
    return 0;
}

void entries_free(struct entries *entries)
{
    free(entries->entry);
    *entries = (struct entries){0, 0, NULL};
}
