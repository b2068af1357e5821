/* One shell of the Earth in which the speed of a wave is a power of the radius, v = a r^b (Bullen's law).
 * Time and distance of a ray through it are then exact. With eta = r / v and p, the ray parameter in s/rad,
 * which is the same all along a ray (Snell's law on a sphere), dr / r = d eta / (eta (1 - b)), and so
 *
 *     q = sqrt(eta^2 - p^2),   time = change of q / (1 - b),   distance = change of atan(q / p) / (1 - b).
 *
 * K. E. Bullen and B. A. Bolt, An Introduction to the Theory of Seismology, 4th edition, 1985, section 7.3.
 */
#ifndef RAYS_LAYER_H
#define RAYS_LAYER_H

struct rays_layer {
    /* Radii in km, speeds in km/s. */
    double r_top, r_bottom;
    double v_top, v_bottom;
    /* r / v in s, at the top and the bottom. */
    double eta_top, eta_bottom;
    /* 1 / (1 - b), or 0 where eta is the same at top and bottom: there, b = 1. */
    double shape;
};

struct rays_step {
    /* Seconds, and the angle at the Earth's centre in rad. */
    double time, distance;
};

/* bottom may be 0 km: the speed is then that of the top in the whole layer. */
void rays_layer_init(struct rays_layer *layer, double r_top, double r_bottom, double v_top, double v_bottom);

/* The speed at a radius inside. */
double rays_layer_speed(const struct rays_layer *layer, double r);

/* Once through the layer. p is at most eta_top and eta_bottom. */
struct rays_step rays_layer_cross(const struct rays_layer *layer, double p);

/* From the top to the deepest point, where eta = p: eta_bottom < p <= eta_top. */
struct rays_step rays_layer_turn(const struct rays_layer *layer, double p);

/* The radius that a ray has reached after the part `done`, 0 to 1, of its time from the top to the bottom, or
 * to the deepest point if it turns inside; and how far it has come. */
double rays_layer_point(const struct rays_layer *layer, double p, int turns, double done,
                        struct rays_step *from_top);

#endif
