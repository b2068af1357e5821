#include "collectives/select/text.h"

#include <stdarg.h>
#include <stdio.h>

void text_add(char *said, size_t bytes, const char *format, ...)
{
    va_list arguments;
    size_t length = strlen(said);
    if (length > 0 && length + 2 < bytes)
        length += (size_t)snprintf(said + length, bytes - length, "; ");
    va_start(arguments, format);
    vsnprintf(said + length, bytes - length, format, arguments);
    va_end(arguments);
}
