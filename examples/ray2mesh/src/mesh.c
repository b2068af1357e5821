/* Divides rays among the cells of a mesh. */
#include "mesh.h"

#include <math.h>
#include <stdlib.h>

/* Stretches shorter than this are not divided: they count for the cell of their middle. */
#define SHORTEST_KM 1e-3

/* Ends of a stretch are looked at this part of it inside, since points of rays lie on boundaries of cells. */
#define INSIDE 1e-6

int rays_mesh_init(struct rays_mesh *mesh, double radius_km, double latitude_step, double longitude_step,
                   double depth_step)
{
    if (!(latitude_step > 0 && longitude_step > 0 && depth_step > 0) || latitude_step > 180 ||
        longitude_step > 360)
        return -1;
    double latitudes = round(180 / latitude_step), longitudes = round(360 / longitude_step);
    double depths = ceil(radius_km / depth_step);
    if (fabs(latitudes * latitude_step - 180) > 1e-9 || fabs(longitudes * longitude_step - 360) > 1e-9 ||
        latitudes * longitudes * depths > INT32_MAX)
        return -1;
    *mesh = (struct rays_mesh){radius_km,      latitude_step,   longitude_step, depth_step,
                               (int)latitudes, (int)longitudes, (int)depths};
    return 0;
}

int64_t rays_mesh_cells(const struct rays_mesh *mesh)
{
    return (int64_t)mesh->depths * mesh->latitudes * mesh->longitudes;
}

static int within(double value, int count) { return value < 0 ? 0 : value >= count ? count - 1 : (int)value; }

int64_t rays_mesh_cell(const struct rays_mesh *mesh, double latitude, double longitude, double depth_km)
{
    int64_t level = within(depth_km / mesh->depth_step, mesh->depths);
    int row = within((latitude + 90) / mesh->latitude_step, mesh->latitudes);
    int column = within((longitude + 180) / mesh->longitude_step, mesh->longitudes);
    return (level * mesh->latitudes + row) * mesh->longitudes + column;
}

struct tracing {
    const struct rays_mesh *mesh;
    const struct rays_circle *circle;
    struct rays_pieces *pieces;
};

struct spot {
    double r, distance;
};

/* A point of the straight line from a to b. Interpolating radius and angle apart gives a spiral, up to pi/2
 * times as long if the line passes the centre. */
static struct spot part_of(struct spot a, struct spot b, double part)
{
    double turn = b.distance - a.distance;
    double along = a.r * (1 - part) + b.r * cos(turn) * part, across = b.r * sin(turn) * part;
    return (struct spot){hypot(along, across), a.distance + atan2(across, along)};
}

static int64_t cell_at(const struct tracing *tracing, struct spot spot)
{
    double latitude, longitude;
    rays_place_geocentric(rays_circle_point(tracing->circle, spot.distance), &latitude, &longitude);
    return rays_mesh_cell(tracing->mesh, latitude, longitude, tracing->mesh->radius_km - spot.r);
}

static int add(struct rays_pieces *pieces, int64_t cell, double length)
{
    for (int i = pieces->count - 1; i >= 0; i--)
        if (pieces->piece[i].cell == cell) {
            pieces->piece[i].length_km += length;
            return 0;
        }
    if (pieces->count == pieces->room) {
        int room = pieces->room ? 2 * pieces->room : 256;
        struct rays_piece_of_ray *more = realloc(pieces->piece, room * sizeof *more);
        if (!more)
            return -1;
        pieces->piece = more;
        pieces->room = room;
    }
    pieces->piece[pieces->count++] = (struct rays_piece_of_ray){cell, length};
    return 0;
}

/* From a to b: into one cell where both ends and the middle are in the same, else each half by itself. */
static int divide(const struct tracing *tracing, struct spot a, struct spot b)
{
    double half = sin((b.distance - a.distance) / 2);
    double length = sqrt((b.r - a.r) * (b.r - a.r) + 4 * a.r * b.r * half * half);
    if (length == 0)
        return 0;
    struct spot middle = part_of(a, b, 0.5);
    int64_t cell = cell_at(tracing, middle);
    /* Circles of latitude are not straight: both ends may be in a cell that the middle is not in. */
    int is_inside = cell == cell_at(tracing, part_of(a, b, INSIDE)) &&
                    cell == cell_at(tracing, part_of(a, b, 1 - INSIDE));
    if (is_inside || length < SHORTEST_KM)
        return add(tracing->pieces, cell, length);
    return divide(tracing, a, middle) || divide(tracing, middle, b) ? -1 : 0;
}

int rays_mesh_trace(const struct rays_mesh *mesh, const struct rays_path *path,
                    const struct rays_circle *circle, struct rays_pieces *pieces)
{
    struct tracing tracing = {mesh, circle, pieces};
    pieces->count = 0;
    for (int i = 1; i < path->points; i++) {
        const struct rays_point *a = &path->point[i - 1], *b = &path->point[i];
        if (divide(&tracing, (struct spot){a->r_km, a->distance}, (struct spot){b->r_km, b->distance}))
            return -1;
    }
    return 0;
}
