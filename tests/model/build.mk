# SPDX-License-Identifier: MIT
#
# tests/model/build.mk - the explorer: the runtime's own files, with a hook at each access to memory,
# linked with the model instead of with a kernel.  Included by the Makefile.

MODEL := $(B)/tests/model
MODEL_FLAGS := -std=gnu11 -O1 -g -fno-pie -fno-omit-frame-pointer -fno-optimize-sibling-calls \
	-fno-stack-protector -U_FORTIFY_SOURCE -fno-delete-null-pointer-checks -fno-lto $(WARN) -MMD -MP \
	-D_GNU_SOURCE -DFZ_DEBUG -DFZ_VERSION='"model"' -I. -iquote tests/model/arch -iquote arch/x86_64
# "make model-coverage": clang puts a hook at each edge between basic blocks (coverage.c).
MODEL_EDGES := -fsanitize-coverage=edge,trace-pc-guard,pc-table,no-prune -Wno-unknown-warning-option
# A call of memcpy() & co. stays one, which hooks.c can have instead (hooks.h); statics.c finds the variables.
MODEL_HOOKS := -fsanitize=thread -Wno-tsan -fno-builtin -include tests/model/hooks.h
MODEL_RENAMES := $(foreach f,memcpy memmove memset memcmp memchr strchr strcspn strlen,--redefine-sym $f=model_$f) \
	--rename-section .data=model_data --rename-section .bss=model_bss
MODEL_CC = $(if $(MODEL_COVERAGE),clang,$(CC) --param=tsan-instrument-func-entry-exit=0) $(MODEL_FLAGS) $(MODEL_HOOKS) \
	$(if $(MODEL_COVERAGE),$(MODEL_EDGES))
# die.c ends the process by system calls: host.c has its functions.
MODEL_RUNTIME := $(filter-out runtime/base/die.c,$(RUNTIME_SRC))
MODEL_SCENARIOS := $(wildcard tests/model/scenarios/*.c tests/model/scenarios/*/*.c)
MODEL_LINKED := $(wildcard tests/model/linked/*.c)
MODEL_OWN := $(filter-out $(if $(MODEL_COVERAGE),,%/coverage.c),$(wildcard tests/model/*.c tests/model/reduce/*.c))
MODEL_HOOKED := $(patsubst %.c,$(MODEL)/%.o,$(MODEL_RUNTIME) $(MODEL_SCENARIOS) $(MODEL_LINKED))
MODEL_PLAIN := $(patsubst %.c,$(MODEL)/%.o,$(MODEL_OWN))
# Explored without hooks: how contexts are switched.  Not explored: how functions of libc are redirected.
MODEL_SWITCH_SRC := $(addprefix arch/x86_64/,frame shadow switch)
MODEL_SWITCH := $(patsubst %,$(MODEL)/%.o,$(MODEL_SWITCH_SRC))
MODEL_UNLISTED := $(filter-out $(MODEL_SWITCH_SRC) $(addprefix arch/x86_64/,detour detour_slots), \
	$(basename $(wildcard arch/x86_64/*.[cS])))

# A seed holds for these sources, with these flags, and this compiler.
MODEL_HASHED := $(sort Makefile tests/model/build.mk $(wildcard arch/*.h arch/x86_64/*.[chS] runtime/*/*.[ch] runtime/*/*.def \
	tests/model/*.[ch] tests/model/*/*.[ch] tests/model/*/*/*.[ch] tests/model/arch/*))
MODEL_SOURCES = $(shell { $(CC) --version | head -1; cat $(MODEL_HASHED); } | sha256sum | cut -c1-10)

$(MODEL_HOOKED): $(MODEL)/%.o: %.c Makefile tests/model/build.mk
	$(say) "  CC      $@"
	@mkdir -p $(@D)
	$(Q)$(MODEL_CC) -c $< -o $@
	$(Q)objcopy $(MODEL_RENAMES) $@
	$(Q)$(filter-out -MMD -MP,$(MODEL_CC)) -E $< -o $(@:.o=.i)

$(MODEL_PLAIN): $(MODEL)/%.o: %.c Makefile tests/model/build.mk
	$(say) "  CC      $@"
	@mkdir -p $(@D)
	$(Q)$(CC) $(MODEL_FLAGS) -O2 $(if $(findstring /seed.c,$<),-DMODEL_SOURCES='"$(MODEL_SOURCES)"') -c $< -o $@
$(MODEL)/tests/model/seed.o: $(MODEL)/sources

# Not by the sources themselves: it is to change, too, when one of them goes away.
$(MODEL)/sources: model-always
	@mkdir -p $(@D)
	@echo $(MODEL_SOURCES) $(MODEL_HOOKED) | cmp -s - $@ || echo $(MODEL_SOURCES) $(MODEL_HOOKED) >$@

$(MODEL)/%.o: %.c Makefile tests/model/build.mk
	@mkdir -p $(@D)
	$(Q)$(CC) $(MODEL_FLAGS) -O2 -c $< -o $@
	$(Q)$(CC) $(filter-out -MMD -MP,$(MODEL_FLAGS)) -E $< -o $(@:.o=.i)

# fz_adopt and fz_clone_resume are the model's: these end and make kernel threads in assembly.
$(MODEL)/%.o: %.S Makefile tests/model/build.mk
	@mkdir -p $(@D)
	$(Q)$(CC) -MMD -MP -c -I. -iquote arch/x86_64 $< -o $@
	$(Q)$(CC) -E -I. -iquote arch/x86_64 $< -o $(@:.o=.i)
	$(Q)objcopy --redefine-sym fz_adopt=adopt_of_this_cpu \
		--redefine-sym fz_clone_resume=clone_resume_of_this_cpu $@

# What names the objects that reach around the model.
REACH := tests/model/reach.sh
$(MODEL)/explore: $(MODEL_HOOKED) $(MODEL_PLAIN) $(MODEL_SWITCH) $(MODEL)/sources tests/model/reach.sh
	$(if $(MODEL_UNLISTED),$(error $(MODEL_UNLISTED): is it explored or not?  Name it in tests/model/build.mk))
	$(Q)MODEL_OBJECTS="$(MODEL_PLAIN)" $(REACH) $(MODEL_HOOKED) $(MODEL_SWITCH)
	$(say) "  LD      $@"
	$(Q)$(CC) -no-pie -o $@ $(filter %.o,$^) -lm

.PHONY: model model-always model-command explore explore-all check-planted model-coverage
model: $(MODEL)/explore

# Prints how an explored file is compiled, and what objcopy does then.
model-command:
	@printf '%s\n' '$(subst ','\'',$(MODEL_CC))' '$(MODEL_RENAMES)'

# HOURS of it with seeds that were not tried before: each round has others.  exec: a signal that ends make ends it, too.
HOURS ?= 1
explore: model
	@FZ_BUILD=$(B) exec tests/model/explore.sh $(HOURS)

# Every run with BOUND deviations, of all SCENARIOS or of those that are named.
BOUND ?= 2
explore-all: model
	@FZ_BUILD=$(B) exec tests/model/explore_all.sh '$(BOUND)' $(SCENARIOS)

# Is each planted fault found?  Builds the explorer for each.
check-planted: model
	@tests/model/planted.sh

# Which edges do RUNS of each kind take?
RUNS ?= 2000
model-coverage:
	@scripts/dev/deps.sh check
	@$(MAKE) -s MODEL_COVERAGE=1 B=$(B)/coverage model
	@FZ_BUILD=$(B)/coverage tests/model/coverage.sh $(RUNS)

-include $(MODEL_HOOKED:.o=.d) $(MODEL_PLAIN:.o=.d) $(MODEL_SWITCH:.o=.d)
