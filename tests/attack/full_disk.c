/* A disk that becomes full at a given write, for one process. Loaded before all libraries (LD_PRELOAD): whoever writes,
   Python or a library in another language, calls these. Only writes to files below one folder, the disk, count. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static long allowed = -1, tried = 0, refused = 0;
static char disk[PATH_MAX] = "";

void disk_full_after(const char *folder, long writes) {
    snprintf(disk, sizeof disk, "%s", folder);
    allowed = writes;
    tried = refused = 0;
}
long disk_writes_tried(void) { return tried; }
long disk_writes_refused(void) { return refused; }

/* 0: let it pass; 1: half of it; 2: nothing of it. The first write that does not fit is written in part. */
static int verdict(int fd) {
    char link[64], path[PATH_MAX];
    if (!disk[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path);
    if (length < (ssize_t)strlen(disk) || strncmp(path, disk, strlen(disk)) != 0) return 0;
    long number = __atomic_fetch_add(&tried, 1, __ATOMIC_SEQ_CST);
    if (allowed < 0 || number < allowed) return 0;
    __atomic_fetch_add(&refused, 1, __ATOMIC_SEQ_CST);
    return number == allowed ? 1 : 2;
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define FULL do { errno = ENOSPC; return -1; } while (0)

ssize_t write(int fd, const void *data, size_t count) {
    REAL(write);
    int full = verdict(fd);
    if (full == 2 || (full == 1 && count < 2)) FULL;
    return real(fd, data, full ? count / 2 : count);
}

ssize_t pwrite(int fd, const void *data, size_t count, off_t at) {
    REAL(pwrite);
    int full = verdict(fd);
    if (full == 2 || (full == 1 && count < 2)) FULL;
    return real(fd, data, full ? count / 2 : count, at);
}

ssize_t pwrite64(int fd, const void *data, size_t count, off64_t at) {
    REAL(pwrite64);
    int full = verdict(fd);
    if (full == 2 || (full == 1 && count < 2)) FULL;
    return real(fd, data, full ? count / 2 : count, at);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(writev);
    if (verdict(fd)) FULL;
    return real(fd, parts, count);
}

ssize_t sendfile(int out, int in, off_t *from, size_t count) {
    REAL(sendfile);
    if (verdict(out)) FULL;
    return real(out, in, from, count);
}

ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t count, unsigned int flags) {
    REAL(copy_file_range);
    if (verdict(out)) FULL;
    return real(in, from, out, to, count, flags);
}
