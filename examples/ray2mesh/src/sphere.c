/* Great circles by vectors. */
#include "sphere.h"

#include <math.h>

/* The ellipsoid is that of WGS84. */
#define FLATTENING (1 / 298.257223563)
#define DEGREE (M_PI / 180)

struct rays_place rays_place_at(double latitude, double longitude)
{
    double squeeze = (1 - FLATTENING) * (1 - FLATTENING);
    double geocentric = atan2(squeeze * sin(latitude * DEGREE), cos(latitude * DEGREE));
    return (struct rays_place){cos(geocentric) * cos(longitude * DEGREE),
                               cos(geocentric) * sin(longitude * DEGREE), sin(geocentric)};
}

void rays_place_geocentric(struct rays_place place, double *latitude, double *longitude)
{
    *latitude = atan2(place.z, hypot(place.x, place.y)) / DEGREE;
    *longitude = atan2(place.y, place.x) / DEGREE;
    if (*longitude >= 180)
        *longitude -= 360;
}

static struct rays_place cross(struct rays_place a, struct rays_place b)
{
    return (struct rays_place){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static double dot(struct rays_place a, struct rays_place b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

static double norm(struct rays_place a) { return sqrt(dot(a, a)); }

double rays_place_distance(struct rays_place from, struct rays_place to)
{
    return atan2(norm(cross(from, to)), dot(from, to));
}

struct rays_circle rays_circle_make(struct rays_place from, struct rays_place to, int round)
{
    struct rays_place normal = cross(from, to);
    double length = norm(normal);
    if (length < 1e-12) {
        struct rays_place east =
            fabs(from.z) < 1 ? (struct rays_place){-from.y, from.x, 0} : (struct rays_place){0, 1, 0};
        normal = cross(from, east);
        normal = cross(from, normal);
        length = norm(normal);
    }
    double scale = (round ? -1 : 1) / length;
    normal = (struct rays_place){normal.x * scale, normal.y * scale, normal.z * scale};
    return (struct rays_circle){from, cross(normal, from)};
}

struct rays_place rays_circle_point(const struct rays_circle *circle, double distance)
{
    double c = cos(distance), s = sin(distance);
    return (struct rays_place){circle->start.x * c + circle->ahead.x * s,
                               circle->start.y * c + circle->ahead.y * s,
                               circle->start.z * c + circle->ahead.z * s};
}
