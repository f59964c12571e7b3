/* Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE. */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "Available.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace dlcrt::impl;

/// Reads a small file as text. False if there is none.
static bool readText(const char *path, char *text, size_t room) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return false;
  size_t length = 0;
  for (ssize_t n; length < room - 1 && (n = read(file, text + length, room - 1 - length)) > 0;)
    length += size_t(n);
  close(file);
  text[length] = 0;
  return length > 0;
}

uint32_t dlcrt::impl::threadsOfQuota(const char *text) {
  char *end;
  long long quota = strtoll(text, &end, 10);
  if (end == text || quota <= 0) // "max", or -1 in version 1
    return 0;
  long long period = strtoll(end, nullptr, 10);
  if (period <= 0)
    return 0;
  long long threads = (quota + period - 1) / period;
  return threads > UINT32_MAX ? UINT32_MAX : uint32_t(threads);
}

static uint32_t threadsOfAffinity() {
  // The system call itself has no limit of 1024 processors, unlike cpu_set_t.
  unsigned long mask[1024];
  long bytes = syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask);
  uint32_t count = 0;
  for (long i = 0; i < bytes / long(sizeof(mask[0])); ++i)
    count += uint32_t(__builtin_popcountl(mask[i]));
  return count ? count : 1;
}

static uint32_t smallerLimit(uint32_t a, uint32_t b) { return a == 0 ? b : b == 0 || a < b ? a : b; }

/// The strictest quota of the group at `path` and of those around it. Inside a container the path may be one that is
/// not visible; then only the root's counts, which is the container's own.
static uint32_t threadsOfGroup(const char *mount, char *path, bool isVersion2) {
  uint32_t limit = 0;
  while (true) {
    char file[4200], text[128];
    if (isVersion2) {
      snprintf(file, sizeof(file), "%s%s/cpu.max", mount, path);
      if (readText(file, text, sizeof(text)))
        limit = smallerLimit(limit, threadsOfQuota(text));
    } else {
      char quota[64], period[64];
      snprintf(file, sizeof(file), "%s%s/cpu.cfs_quota_us", mount, path);
      bool found = readText(file, quota, sizeof(quota));
      snprintf(file, sizeof(file), "%s%s/cpu.cfs_period_us", mount, path);
      if (found && readText(file, period, sizeof(period))) {
        snprintf(text, sizeof(text), "%.60s %.60s", quota, period);
        limit = smallerLimit(limit, threadsOfQuota(text));
      }
    }
    char *slash = strrchr(path, '/');
    if (!slash || path[0] == 0)
      return limit;
    *slash = 0;
  }
}

static uint32_t threadsOfGroups() {
  // Lines "ID:CONTROLLERS:PATH"; version 2 is "0::PATH".
  char groups[4096];
  if (!readText("/proc/self/cgroup", groups, sizeof(groups)))
    return 0;
  uint32_t limit = 0;
  char *next = groups;
  while (next && *next) {
    char *line = next;
    next = strchr(line, '\n');
    if (next)
      *next++ = 0;
    char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : nullptr;
    if (!path)
      continue;
    *path++ = 0;
    ++controllers;
    if (strcmp(path, "/") == 0)
      *path = 0;
    if (*controllers == 0)
      limit = smallerLimit(limit, threadsOfGroup("/sys/fs/cgroup", path, true));
    else if (strcmp(controllers, "cpu") == 0 || strstr(controllers, "cpu,") || strstr(controllers, ",cpu"))
      limit = smallerLimit(limit, threadsOfGroup("/sys/fs/cgroup/cpu", path, false));
  }
  return limit;
}

uint32_t dlcrt::impl::availableThreads() { return smallerLimit(threadsOfAffinity(), threadsOfGroups()); }
