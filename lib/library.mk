# What the libraries have in common: each sets NAME, and LIBS for what its shared library needs, and includes
# this. `make` takes mpicc as it comes, `make MPICC=mpicc.openmpi` another one. OUT is where everything goes.
MPICC ?= mpicc
CFLAGS ?= -O2 -g
OUT ?= build

HEADERS := $(wildcard *.h src/*.h) ../common/places.h
OBJECTS := $(patsubst src/%.c,$(OUT)/%.o,$(wildcard src/*.c)) $(OUT)/places.o
# MPICH's MPI_STATUS_IGNORE is the address 1, in which GCC sees an array of no bytes.
FLAGS := -std=gnu11 -Wall -Wextra -Wno-stringop-overflow -fPIC $(CFLAGS)

.PHONY: all clean
all: $(OUT)/libcauseway_$(NAME).a $(OUT)/libcauseway_$(NAME).so

$(OUT)/%.o: src/%.c $(HEADERS)
	@mkdir -p $(OUT)
	$(MPICC) $(FLAGS) -c $< -o $@

$(OUT)/%.o: ../common/%.c $(HEADERS)
	@mkdir -p $(OUT)
	$(MPICC) $(FLAGS) -c $< -o $@

$(OUT)/libcauseway_$(NAME).a: $(OBJECTS)
	rm -f $@
	ar rcs $@ $^

$(OUT)/libcauseway_$(NAME).so: $(OBJECTS)
	$(MPICC) -shared $^ -o $@ $(LIBS)

clean:
	rm -rf $(OUT)
