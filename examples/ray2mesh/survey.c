/* The first phase: rank 0 reads model, events and stations, and broadcasts them. */
#include "ray2mesh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_phases(struct survey *survey, const char *text, char error[RAY2MESH_ERROR_BYTES])
{
    char name[16];
    for (const char *from = text;; from++) {
        int length = (int)strcspn(from, ",");
        snprintf(name, sizeof name, "%.*s", length, from);
        int phase = rays_phase_named(name);
        for (int i = 0; i < survey->phases; i++)
            if (survey->phase[i] == phase)
                phase = -1;
        if (phase < 0) {
            snprintf(
                error, RAY2MESH_ERROR_BYTES,
                "--phases: \"%.*s\" is no phase, or is there twice: there are P S PcP ScS PKP PKPab PKPbc PKPdf pP sS",
                length, from);
            return -1;
        }
        survey->phase[survey->phases++] = phase;
        from += length;
        if (!*from)
            return 0;
    }
}

static int read_mesh(struct survey *survey, const char *text, char error[RAY2MESH_ERROR_BYTES])
{
    double step[3];
    char rest;
    if (sscanf(text, "%lf,%lf,%lf%c", &step[0], &step[1], &step[2], &rest) == 3 &&
        !rays_mesh_init(&survey->mesh, survey->model.radius_km, step[0], step[1], step[2]))
        return 0;
    snprintf(
        error, RAY2MESH_ERROR_BYTES,
        "--mesh %s: the size of a cell is LATITUDE,LONGITUDE,DEPTH in degrees and km; it divides 180 and 360 "
        "degrees, and there are less than 2^31 cells",
        text);
    return -1;
}

static int read_all(struct survey *survey, const struct options *options, char error[RAY2MESH_ERROR_BYTES])
{
    if (rays_model_read(&survey->model, options->model, error, RAY2MESH_ERROR_BYTES) ||
        read_phases(survey, options->phases, error) || read_mesh(survey, options->mesh, error) ||
        rays_table_read(&survey->events, options->events, 1, error, RAY2MESH_ERROR_BYTES) ||
        rays_table_read(&survey->stations, options->stations, 0, error, RAY2MESH_ERROR_BYTES))
        return -1;
    const struct rays_layer *lowest = &survey->model.layer[RAYS_P][survey->model.first[RAYS_OUTER_CORE] - 1];
    for (int i = 0; i < survey->events.sites; i++)
        if (survey->events.site[i].depth_km >= survey->model.radius_km - lowest->r_bottom) {
            snprintf(error, RAY2MESH_ERROR_BYTES, "%s: event %s: %g km is not in the mantle", options->events,
                     survey->events.site[i].name, survey->events.site[i].depth_km);
            return -1;
        }
    return output_begin(options->out, error);
}

/* Room for a table at the other ranks, and its contents. Counts are int, sizes in MPI's own unit of a site.
 */
static int share_table(struct rays_table *table, MPI_Datatype site, int rank, MPI_Comm comm)
{
    MPI_Bcast(&table->sites, 1, MPI_INT, 0, comm);
    if (rank)
        table->site = malloc(table->sites * sizeof *table->site);
    int failed = table->site == NULL;
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, comm);
    if (!failed)
        MPI_Bcast(table->site, table->sites, site, 0, comm);
    return failed ? -1 : 0;
}

int survey_share(struct survey *survey, const struct options *options, MPI_Comm comm,
                 char error[RAY2MESH_ERROR_BYTES])
{
    int rank, failed = 0;
    MPI_Datatype site;
    MPI_Comm_rank(comm, &rank);
    memset(survey, 0, sizeof *survey);
    if (rank == 0)
        failed = read_all(survey, options, error);
    MPI_Bcast(&failed, 1, MPI_INT, 0, comm);
    if (failed)
        return -1;
    /* All ranks run the same program on the same kind of processor, so structures travel as bytes. */
    MPI_Bcast(&survey->model, sizeof survey->model, MPI_BYTE, 0, comm);
    MPI_Bcast(&survey->mesh, sizeof survey->mesh, MPI_BYTE, 0, comm);
    MPI_Bcast(&survey->phases, 1, MPI_INT, 0, comm);
    MPI_Bcast(survey->phase, survey->phases, MPI_INT, 0, comm);
    MPI_Type_contiguous(sizeof(struct rays_site), MPI_BYTE, &site);
    MPI_Type_commit(&site);
    failed =
        share_table(&survey->events, site, rank, comm) || share_table(&survey->stations, site, rank, comm);
    MPI_Type_free(&site);
    if (failed)
        snprintf(error, RAY2MESH_ERROR_BYTES, "out of memory for events and stations");
    return failed ? -1 : 0;
}

int64_t survey_items(const struct survey *survey)
{
    return (int64_t)survey->events.sites * survey->phases * survey->stations.sites;
}

void survey_free(struct survey *survey)
{
    rays_table_free(&survey->events);
    rays_table_free(&survey->stations);
}
