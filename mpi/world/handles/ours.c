#include "world/handles/ours.h"

struct ours ours;
