/* SPDX-License-Identifier: MIT */
#include "secure.h"

#include <endian.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

/*
 * Does this user namespace have the id? The kernel shows an id that it does not have as the overflow
 * id, so only the overflow id must be looked up in the map.
 */
static bool is_mapped(unsigned id, const char *map_name)
{
	const unsigned overflow = 65534;
	unsigned first, outside, count;
	bool found = false;
	FILE *map;

	if (id != overflow)
		return true;
	map = fopen(map_name, "re");
	if (!map)
		return true;
	while (!found && fscanf(map, "%u %u %u", &first, &outside, &count) == 3)
		found = id >= first && id - first < count;
	fclose(map);
	return found;
}

struct capabilities {
	uint64_t permitted, inheritable, bounding;
};

static void own_capabilities(struct capabilities *ret)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	syscall(SYS_capget, &header, data);
	ret->permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
	ret->inheritable = data[0].inheritable | (uint64_t)data[1].inheritable << 32;
	ret->bounding = 0;
	for (int i = 0; i < 64 && prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		if (prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1)
			ret->bounding |= UINT64_C(1) << i;
}

/* Does exec of this file give its capabilities to a user who is not root? Then the exec is "secure". */
static bool gains_capabilities(const char *path, bool no_new_privileges)
{
	struct vfs_ns_cap_data data = { 0 };
	ssize_t size = getxattr(path, "security.capability", &data, sizeof(data));
	uint32_t magic = le32toh(data.magic_etc);
	struct capabilities own;
	uint64_t permitted, inheritable, left;

	if (size < (ssize_t)XATTR_CAPS_SZ_1)
		return false;
	/* These capabilities count only in another user namespace, whose root has this id. */
	if ((magic & VFS_CAP_REVISION_MASK) == VFS_CAP_REVISION_3 && data.rootid != 0)
		return false;
	if (magic & VFS_CAP_FLAGS_EFFECTIVE)
		return true;
	permitted = le32toh(data.data[0].permitted);
	inheritable = le32toh(data.data[0].inheritable);
	if (size >= (ssize_t)XATTR_CAPS_SZ_2) {
		permitted |= (uint64_t)le32toh(data.data[1].permitted) << 32;
		inheritable |= (uint64_t)le32toh(data.data[1].inheritable) << 32;
	}
	own_capabilities(&own);
	left = (own.bounding & permitted) | (own.inheritable & inheritable);
	return (no_new_privileges ? left & own.permitted : left) != 0;
}

const char *secure_why(const char *path)
{
	bool no_new_privileges = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
	uid_t user = geteuid();
	gid_t group = getegid();
	struct statvfs mount;
	struct stat status;
	bool effective;

	effective = stat(path, &status) == 0 &&
		    !(statvfs(path, &mount) == 0 && mount.f_flag & ST_NOSUID);
	if (effective && !no_new_privileges && is_mapped(status.st_uid, "/proc/self/uid_map") &&
	    is_mapped(status.st_gid, "/proc/self/gid_map")) {
		if (status.st_mode & S_ISUID)
			user = status.st_uid;
		/* Without execute permission for the group, S_ISGID means mandatory locking, not a group. */
		if (status.st_mode & S_ISGID && status.st_mode & S_IXGRP)
			group = status.st_gid;
	}
	if (user != getuid())
		return "set-user-ID";
	if (group != getgid())
		return "set-group-ID";
	if (effective && getuid() != 0 && gains_capabilities(path, no_new_privileges))
		return "file capabilities";
	return NULL;
}
