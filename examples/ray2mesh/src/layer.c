/* Rays through one shell; layer.h has the formulas. */
#include "layer.h"

#include <math.h>

/* Below this change of eta over a layer, relative to eta, b counts as 1. The formulas for b = 1 then err by
 * half of it, and the others lose as much to rounding. */
#define SAME_ETA 1e-8

void rays_layer_init(struct rays_layer *layer, double r_top, double r_bottom, double v_top, double v_bottom)
{
    if (r_bottom <= 0)
        v_bottom = v_top;
    *layer = (struct rays_layer){r_top, r_bottom, v_top, v_bottom, r_top / v_top, r_bottom / v_bottom, 1};
    if (r_bottom <= 0)
        return;
    double change = log(layer->eta_top / layer->eta_bottom);
    layer->shape = fabs(change) < SAME_ETA ? 0 : log(r_top / r_bottom) / change;
}

double rays_layer_speed(const struct rays_layer *layer, double r)
{
    if (r >= layer->r_top || layer->v_top == layer->v_bottom)
        return layer->v_top;
    double b = log(layer->v_top / layer->v_bottom) / log(layer->r_top / layer->r_bottom);
    return layer->v_top * pow(r / layer->r_top, b);
}

static double root(double eta, double p) { return eta > p ? sqrt((eta - p) * (eta + p)) : 0; }

/* Between q at the top and a smaller or larger q below. The differences are written so that nothing cancels
 * where both are nearly the same. */
static struct rays_step between(const struct rays_layer *layer, double p, double eta_low, double q_top,
                                double q_low)
{
    double sum = q_top + q_low;
    double change = sum > 0 ? (layer->eta_top - eta_low) * (layer->eta_top + eta_low) / sum : 0;
    return (struct rays_step){change * layer->shape, atan2(p * change, p * p + q_top * q_low) * layer->shape};
}

struct rays_step rays_layer_cross(const struct rays_layer *layer, double p)
{
    double q_top = root(layer->eta_top, p), q_bottom = root(layer->eta_bottom, p);
    if (layer->shape == 0) {
        double stretch = log(layer->r_top / layer->r_bottom) / q_top;
        return (struct rays_step){layer->eta_top * layer->eta_top * stretch, p * stretch};
    }
    return between(layer, p, layer->eta_bottom, q_top, q_bottom);
}

struct rays_step rays_layer_turn(const struct rays_layer *layer, double p)
{
    double q = root(layer->eta_top, p);
    return (struct rays_step){q * layer->shape, atan2(q, p) * layer->shape};
}

double rays_layer_point(const struct rays_layer *layer, double p, int turns, double done,
                        struct rays_step *from_top)
{
    if (layer->shape == 0) {
        struct rays_step whole = rays_layer_cross(layer, p);
        *from_top = (struct rays_step){whole.time * done, whole.distance * done};
        return layer->r_top * pow(layer->r_bottom / layer->r_top, done);
    }
    /* Time is linear in q. */
    double q_top = root(layer->eta_top, p), q_end = turns ? 0 : root(layer->eta_bottom, p);
    double q = q_top + (q_end - q_top) * done;
    double eta = sqrt(p * p + q * q);
    *from_top = between(layer, p, eta, q_top, q);
    return eta > 0 ? layer->r_top * pow(eta / layer->eta_top, layer->shape) : 0;
}
