/* Places on the sphere. Stations and events come with geographic latitudes, those of maps; the sphere has
 * geocentric ones, which differ by up to 0.19 degrees. Times are not corrected for the Earth's flattening. */
#ifndef RAYS_SPHERE_H
#define RAYS_SPHERE_H

/* A unit vector from the centre: x towards latitude 0, longitude 0; z towards the north pole. */
struct rays_place {
    double x, y, z;
};

/* From degrees, geographic. */
struct rays_place rays_place_at(double latitude, double longitude);

/* Degrees, geocentric; the longitude from -180 to below 180. */
void rays_place_geocentric(struct rays_place place, double *latitude, double *longitude);

/* The angle between two places, 0 to pi rad. */
double rays_place_distance(struct rays_place from, struct rays_place to);

/* The great circle through two places: a ray lies in its plane. */
struct rays_circle {
    struct rays_place start, ahead;
};

/* It leaves `from` towards `to`, or with round = 1 the other way. Places that are the same, or opposite, have
 * many: then it goes along the meridian. */
struct rays_circle rays_circle_make(struct rays_place from, struct rays_place to, int round);
struct rays_place rays_circle_point(const struct rays_circle *circle, double distance);

#endif
