# SPDX-License-Identifier: MIT
#
# Builds under build/ only.  V=1 shows commands.

PREFIX ?= /usr/local
DESTDIR ?=
CC ?= gcc
MINUTES ?= 30

VERSION := 0.1.0
B := build
CPU := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @echo
endif

WARN := -Wall -Wextra -Wmissing-prototypes -Wshadow -Werror

# -fPIC, hidden, initial-exec: one object for the .so and the .a; thread-local
#   variables at a fixed distance from the TCB (runtime/fiber.h).
# -U_FORTIFY_SOURCE: our bodies would call the __*_chk names that they define.
# -fno-omit-frame-pointer, unwind tables: pthread_exit unwinds through us.
# -fno-delete-null-pointer-checks: libc's prototypes say nonnull; callers do not
#   care, and EFAULT is the kernel's to report.
# No LTO: it would see through the assembly that changes the thread pointer.
CFLAGS_ALL := -std=gnu11 -O2 -g -fPIC -fvisibility=hidden -ftls-model=initial-exec \
	-U_FORTIFY_SOURCE -fno-omit-frame-pointer -fasynchronous-unwind-tables \
	-fexceptions -fno-delete-null-pointer-checks -fno-lto $(WARN) -MMD -MP \
	-D_GNU_SOURCE -DFZ_VERSION='"$(VERSION)"' -I. -iquote arch/$(CPU) $(CFLAGS)

ARCH_SRC := $(wildcard arch/$(CPU)/*.c arch/$(CPU)/*.S)
RUNTIME_SRC := $(wildcard runtime/*.c)
PRELOAD_SRC := $(wildcard preload/*.c)
RUNTIME_OBJ := $(patsubst %,$(B)/%.o,$(basename $(ARCH_SRC) $(RUNTIME_SRC)))
PRELOAD_OBJ := $(patsubst %,$(B)/%.o,$(basename $(PRELOAD_SRC)))

.PHONY: all
all: $(B)/libfiberize.so $(B)/libfz_runtime.a

$(B)/%.o: %.c
	$(say) "  CC      $<"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -c $< -o $@

$(B)/%.o: %.S
	$(say) "  AS      $<"
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS_ALL) -c $< -o $@

$(B)/libfz_runtime.a: $(RUNTIME_OBJ)
	$(say) "  AR      $@"
	$(Q)rm -f $@ && ar rcs $@ $^

# initfirst: our constructor before those of other libraries, which may call us.
# liburing as an archive: it makes raw system calls, and no user has to install it.
$(B)/libfiberize.so: $(PRELOAD_OBJ) $(RUNTIME_OBJ) $(B)/exports.map
	$(say) "  LD      $@"
	$(Q)$(CC) -shared -o $@ $(PRELOAD_OBJ) $(RUNTIME_OBJ) -l:liburing.a \
		-Wl,-z,defs -Wl,-z,now -Wl,-z,initfirst -Wl,-soname,libfiberize.so \
		-Wl,--version-script=$(B)/exports.map

$(B)/exports.map: preload/symbols.def scripts/gen-exports.sh
	@mkdir -p $(@D)
	$(Q)scripts/gen-exports.sh $< > $@

.PHONY: clean
clean:
	rm -rf $(B)

-include $(RUNTIME_OBJ:.o=.d) $(PRELOAD_OBJ:.o=.d)
