# SPDX-License-Identifier: MIT
#
# Fuzz targets, by clang's libFuzzer, and record, which makes a beginning for one of them (README.md).

FUZZ_TARGETS := $(addprefix $(B)/tests/fuzz/,description modules options proc profile program)
FUZZ_INSPECT := $(filter-out %/inspect/main.c %/process/core.c,$(wildcard $(addprefix scripts/, \
	$(addsuffix /*.c,process inspect counters trace top)))) scripts/machine/processes.c scripts/machine/measured.c
FUZZ_LIBS := -ldw -lelf -ljson-c -lstdc++ $(shell pkg-config --libs ncursesw 2>/dev/null || echo -lncursesw -ltinfo) -lm -pthread
FUZZ_HEADERS := $(wildcard tests/fuzz/*.h scripts/*/*.h scripts/*/*.def runtime/*/*.h runtime/*/*.def)

# What each links; what it includes is no part of that.
$(B)/tests/fuzz/options $(B)/tests/fuzz/profile $(B)/tests/fuzz/program: FUZZ_LINK := $(CHECK_SRC)
$(B)/tests/fuzz/proc: FUZZ_LINK := scripts/process/program.c scripts/process/source.c
$(B)/tests/fuzz/modules: FUZZ_LINK := scripts/process/source.c
$(B)/tests/fuzz/description: FUZZ_LINK := $(filter-out %/say.c,$(FUZZ_INSPECT))

$(FUZZ_TARGETS): $(B)/tests/fuzz/%: tests/fuzz/%.c $(CHECK_SRC) $(FUZZ_INSPECT) tests/helpers/fuzz.c \
		runtime/base/cpus.c $(FUZZ_HEADERS) Makefile tests/fuzz/build.mk
	$(say) "  CCLD    $@"
	@mkdir -p $(@D)
	$(Q)clang -std=gnu11 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -Wall -Wextra -Werror \
		-Wno-unused-function \
		-D_GNU_SOURCE $(SAY_VERSION) -I. -iquote arch/$(CPU) -iquote scripts/process \
		-iquote scripts/inspect $< $(FUZZ_LINK) -o $@ $(FUZZ_LIBS)

$(B)/tests/fuzz/record: tests/fuzz/record.c scripts/process/core.c $(FUZZ_INSPECT) $(FUZZ_HEADERS) Makefile
	$(say) "  CCLD    $@"
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O2 -g $(WARN) -D_GNU_SOURCE $(SAY_VERSION) -I. $< $(FUZZ_INSPECT) -o $@ $(FUZZ_LIBS)

.PHONY: fuzz-targets
fuzz-targets: $(FUZZ_TARGETS) $(B)/tests/fuzz/record
