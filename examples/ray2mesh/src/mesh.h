/* Cells of equal latitude, longitude and depth, and how long a ray is in each it goes through. */
#ifndef RAYS_MESH_H
#define RAYS_MESH_H

#include "path.h"
#include "sphere.h"

#include <stdint.h>

struct rays_mesh {
    double radius_km;
    /* The size of a cell: degrees, degrees, km. The lowest cells may be thinner. */
    double latitude_step, longitude_step, depth_step;
    int latitudes, longitudes, depths;
};

/* Sizes of cells must divide 180 and 360 degrees. -1 where they do not, or there would be more than 2^31
 * cells. */
int rays_mesh_init(struct rays_mesh *mesh, double radius_km, double latitude_step, double longitude_step,
                   double depth_step);

int64_t rays_mesh_cells(const struct rays_mesh *mesh);

/* Its index: depth first, then latitude from south to north, then longitude from -180, which varies fastest.
 */
int64_t rays_mesh_cell(const struct rays_mesh *mesh, double latitude, double longitude, double depth_km);

struct rays_piece_of_ray {
    int64_t cell;
    double length_km;
};

/* The pieces of one ray, each cell once, in the order in which the ray first meets them. */
struct rays_pieces {
    int count, room;
    struct rays_piece_of_ray *piece;
};

/* Where the path crosses from cell to cell is found to a metre. Straight lines join its points. 0, or -1 if
 * memory is short. pieces must be zeros, or of a call before. */
int rays_mesh_trace(const struct rays_mesh *mesh, const struct rays_path *path,
                    const struct rays_circle *circle, struct rays_pieces *pieces);

#endif
