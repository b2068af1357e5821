/* Writes what was found, at rank 0. Others send their entries in the order of ranks, a piece at a time.
 * Numbers are written so that they are read back as the same bits. */
#include "ray2mesh.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEGREE (M_PI / 180)

/* Entries of a piece: 1.5 MB. */
#define PIECE_ENTRIES 65536
/* So many pieces are asked for before they are needed: at hundreds of ranks a piece is small, and takes less
 * time to write than its way from another site. */
#define PIECES_AHEAD 8

struct writer {
    const struct survey *survey;
    const struct ray *rays;
    /* The number of each item's ray, from 1; 0 if there is none. */
    int64_t *row;
    FILE *times, *matrix, *cells;
    /* The cell that entries are being added to, as they come by cell and item. */
    int64_t cell, cell_rays;
    double cell_length;
    /* Entries of the matrix that all rays have, and those written. */
    int64_t expected, written;
};

/* Files are written under another name, and get theirs when all are whole: a run that ends early leaves what
 * was there. */
static const char *const names[] = {"times.csv", "matrix.mtx", "cells.csv"};
#define FILES 3

static void path_of(char path[4096], const char *folder, int file, const char *suffix)
{
    snprintf(path, 4096, "%s/%s%s", folder, names[file], suffix);
}

static FILE *begin(const char *folder, int file, char error[RAY2MESH_ERROR_BYTES])
{
    char path[4096];
    path_of(path, folder, file, ".part");
    FILE *opened = fopen(path, "w");
    if (!opened)
        snprintf(error, RAY2MESH_ERROR_BYTES, "%.400s cannot be written: %s", path, strerror(errno));
    return opened;
}

static void write_times(struct writer *writer)
{
    const struct survey *survey = writer->survey;
    int64_t rows = 0, items = survey_items(survey);
    fprintf(writer->times, "ray,event,station,phase,distance_deg,time_s,p_s_per_deg,length_km\n");
    for (int64_t item = 0; item < items; item++) {
        const struct ray *ray = &writer->rays[item];
        int64_t pair = item / survey->stations.sites;
        writer->row[item] = ray->phase < 0 ? 0 : ++rows;
        if (ray->phase < 0)
            continue;
        writer->expected += ray->cells;
        fprintf(writer->times, "%" PRId64 ",%s,%s,%s,%.6f,%.4f,%.6f,%.3f\n", rows,
                survey->events.site[pair / survey->phases].name,
                survey->stations.site[item % survey->stations.sites].name, rays_phase_names[ray->phase],
                ray->distance / DEGREE, ray->time_s, ray->p * DEGREE, ray->length_km);
    }
    fprintf(
        writer->matrix,
        "%%%%MatrixMarket matrix coordinate real general\n"
        "%% length in km of each ray (row: its number in times.csv) in each cell (column: as in cells.csv)\n"
        "%" PRId64 " %" PRId64 " %" PRId64 "\n",
        rows, rays_mesh_cells(&survey->mesh), writer->expected);
    fprintf(writer->cells,
            "# radius %.17g km; %d depths of %.17g km, %d latitudes of %.17g degrees, %d longitudes of "
            "%.17g degrees\n"
            "cell,depth_km,latitude,longitude,rays,length_km\n",
            survey->mesh.radius_km, survey->mesh.depths, survey->mesh.depth_step, survey->mesh.latitudes,
            survey->mesh.latitude_step, survey->mesh.longitudes, survey->mesh.longitude_step);
}

/* The line of a cell: its top, and its south-western corner. */
static void end_cell(struct writer *writer)
{
    const struct rays_mesh *mesh = &writer->survey->mesh;
    int64_t column = writer->cell % mesh->longitudes, row = writer->cell / mesh->longitudes % mesh->latitudes;
    int64_t level = writer->cell / mesh->longitudes / mesh->latitudes;
    if (writer->cell_rays)
        fprintf(writer->cells, "%" PRId64 ",%.10g,%.10g,%.10g,%" PRId64 ",%.17g\n", writer->cell + 1,
                level * mesh->depth_step, row * mesh->latitude_step - 90, column * mesh->longitude_step - 180,
                writer->cell_rays, writer->cell_length);
    writer->cell_rays = 0;
    writer->cell_length = 0;
}

static void write_entries(struct writer *writer, const struct entry *entry, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (entry[i].cell != writer->cell)
            end_cell(writer);
        writer->cell = entry[i].cell;
        writer->cell_rays++;
        writer->cell_length += entry[i].length_km;
        writer->written++;
        fprintf(writer->matrix, "%" PRId64 " %" PRId64 " %.17g\n", writer->row[entry[i].item],
                entry[i].cell + 1, entry[i].length_km);
    }
}

/* The entries of the other ranks, in pieces: which piece comes next. */
struct place {
    int rank;
    int64_t at;
};

/* Goes to the next piece; 0 where there is none. It begins with rank 0, whose entries are no piece. */
static int next_piece(struct place *place, const int64_t *counts, int ranks)
{
    place->at += PIECE_ENTRIES;
    if (place->rank && place->at < counts[place->rank])
        return 1;
    place->at = 0;
    while (++place->rank < ranks)
        if (counts[place->rank])
            return 1;
    return 0;
}

static int piece_bytes(struct place place, const int64_t *counts)
{
    int64_t left = counts[place.rank] - place.at;
    return (int)((left < PIECE_ENTRIES ? left : PIECE_ENTRIES) * sizeof(struct entry));
}

/* Rank 0 asks for pieces in the order of ranks, some ahead, and writes them in this order. */
static void take(struct writer *writer, const struct entries *owned, struct entry *piece,
                 const int64_t *counts, MPI_Comm comm)
{
    struct place asked = {0, 0}, taken = {0, 0};
    int ranks, is_more = 1;
    MPI_Comm_size(comm, &ranks);
    for (int i = 0; i < PIECES_AHEAD && (is_more = next_piece(&asked, counts, ranks)); i++)
        MPI_Send(NULL, 0, MPI_BYTE, asked.rank, 0, comm);
    write_entries(writer, owned->entry, owned->count);
    while (next_piece(&taken, counts, ranks)) {
        int bytes = piece_bytes(taken, counts);
        MPI_Recv(piece, bytes, MPI_BYTE, taken.rank, 0, comm, MPI_STATUS_IGNORE);
        if (is_more && (is_more = next_piece(&asked, counts, ranks)))
            MPI_Send(NULL, 0, MPI_BYTE, asked.rank, 0, comm);
        write_entries(writer, piece, bytes / (int)sizeof *piece);
    }
    end_cell(writer);
}

/* The others send a piece when they are asked to. */
static void give(const struct entries *owned, MPI_Comm comm)
{
    for (int64_t at = 0; at < owned->count; at += PIECE_ENTRIES) {
        int64_t size = owned->count - at < PIECE_ENTRIES ? owned->count - at : PIECE_ENTRIES;
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE);
        MPI_Send(owned->entry + at, (int)(size * sizeof *owned->entry), MPI_BYTE, 0, 0, comm);
    }
}

int output_begin(const char *folder, char error[RAY2MESH_ERROR_BYTES])
{
    if ((mkdir(folder, 0777) && errno != EEXIST) || access(folder, W_OK | X_OK)) {
        snprintf(error, RAY2MESH_ERROR_BYTES, "%.400s: the folder cannot be made: %s", folder,
                 strerror(errno));
        return -1;
    }
    return 0;
}

static int open_all(struct writer *writer, const char *folder, char error[RAY2MESH_ERROR_BYTES])
{
    writer->row = malloc(survey_items(writer->survey) * sizeof *writer->row);
    if (!writer->row) {
        snprintf(error, RAY2MESH_ERROR_BYTES, "out of memory for the numbers of rays");
        return -1;
    }
    writer->times = begin(folder, 0, error);
    writer->matrix = writer->times ? begin(folder, 1, error) : NULL;
    writer->cells = writer->matrix ? begin(folder, 2, error) : NULL;
    return writer->cells ? 0 : -1;
}

/* 0 if all of it is written. */
static int close_all(struct writer *writer)
{
    FILE *files[FILES] = {writer->times, writer->matrix, writer->cells};
    int failed = 0;
    for (int i = 0; i < FILES; i++)
        if (files[i])
            failed |= ferror(files[i]) | fclose(files[i]);
    free(writer->row);
    return failed;
}

/* Gives the files their names, or removes them. */
static int settle(const char *folder, int failed)
{
    char path[4096], name[4096];
    for (int i = 0; i < FILES; i++) {
        path_of(path, folder, i, ".part");
        path_of(name, folder, i, "");
        failed |= failed ? unlink(path) : rename(path, name);
    }
    return failed;
}

/* Whether all is there, with a sentence where it is not. */
static int finish(struct writer *writer, const char *folder, int failed, char error[RAY2MESH_ERROR_BYTES])
{
    if (close_all(writer) && !failed) {
        snprintf(error, RAY2MESH_ERROR_BYTES, "%.400s: not all could be written", folder);
        failed = 1;
    }
    if (!failed && writer->written != writer->expected) {
        snprintf(error, RAY2MESH_ERROR_BYTES,
                 "of %" PRId64 " entries of the matrix %" PRId64 " are there: a rank was lost",
                 writer->expected, writer->written);
        failed = 1;
    }
    if (settle(folder, failed) && !failed) {
        snprintf(error, RAY2MESH_ERROR_BYTES, "%.400s: files cannot be renamed: %s", folder, strerror(errno));
        failed = 1;
    }
    return failed;
}

int output_write(const struct survey *survey, const struct ray *rays, const struct entries *owned,
                 const char *folder, MPI_Comm comm, char error[RAY2MESH_ERROR_BYTES])
{
    struct writer writer = {.survey = survey, .rays = rays};
    struct entry *piece = NULL;
    int64_t *counts = NULL;
    int rank, ranks, failed = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    if (rank == 0) {
        piece = malloc(PIECE_ENTRIES * sizeof *piece);
        counts = malloc(ranks * sizeof *counts);
        failed = open_all(&writer, folder, error);
        if (!failed && !(piece && counts)) {
            snprintf(error, RAY2MESH_ERROR_BYTES, "out of memory for the entries of other ranks");
            failed = 1;
        }
    }
    MPI_Bcast(&failed, 1, MPI_INT, 0, comm);
    if (!failed) {
        MPI_Gather(&owned->count, 1, MPI_INT64_T, counts, 1, MPI_INT64_T, 0, comm);
        if (rank == 0) {
            write_times(&writer);
            take(&writer, owned, piece, counts, comm);
        } else {
            give(owned, comm);
        }
    }
    free(piece);
    free(counts);
    if (rank == 0)
        failed = finish(&writer, folder, failed, error);
    MPI_Bcast(&failed, 1, MPI_INT, 0, comm);
    return failed ? -1 : 0;
}
