#define HANDLE(kind) integer
#include "lists.inc"
