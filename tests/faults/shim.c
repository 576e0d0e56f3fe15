/* Lets the n-th call that a program makes to the files below one folder fail: loaded before libc (LD_PRELOAD).

All processes of a case share one control block, a mapped file, so that calls are counted over all of them. A call is
counted while `enabled` is set, if its path is below `prefix` and its thread is in the `lane`. What happens to call
number `at` is the `kind`; with `sticky`, also to all calls after it whose class is in `classes`. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NONE, FAIL, SHORT, TORN, KILL };
enum { READS = 1, WRITES = 2, REMOVES = 4, SYNCS = 8, CLOSES = 16 };
#define MOST 40000
#define PATH 232

struct entry { char op[14]; char class; char lane; char path[PATH]; char other[PATH]; };
struct control {
    int enabled, tracing, lane, kind, error, sticky, classes, hit;
    long at, count, traced;
    char prefix[256];
    struct entry trace[MOST];
};
static struct control *control;

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("FAULTS_CONTROL");
    int fd = name ? syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *map = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (map != MAP_FAILED) control = map;
}

long faults_size(void) { return sizeof(struct control); }

#define ON (control && control->enabled)
#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (!real) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

/* The path of a name relative to a folder, or of a descriptor. */
static void find(char *found, int at, const char *name) {
    char link[40];
    long size = 0;
    found[0] = 0;
    if (!name || name[0] != '/') {
        if (at == AT_FDCWD) strcpy(link, "/proc/self/cwd");
        else snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        size = syscall(SYS_readlinkat, AT_FDCWD, link, found, PATH - 1);
        if (size < 0) size = 0;
        found[size] = 0;
    }
    if (name && *name) snprintf(found + size, PATH - size, "%s%s", size ? "/" : "", name);
}

static void note(const char *op, int class, int lane, const char *path, const char *other) {
    long number = __sync_fetch_and_add(&control->traced, 1);
    if (number >= MOST) return;
    struct entry *entry = &control->trace[number];
    snprintf(entry->op, sizeof entry->op, "%s", op);
    entry->class = class;
    entry->lane = lane;
    snprintf(entry->path, PATH, "%s", path);
    snprintf(entry->other, PATH, "%s", other ? other : "");
}

/* NONE, FAIL with errno set, SHORT or TORN; a KILL does not come back. */
static int fate(const char *op, int class, const char *path, const char *other) {
    int lane = syscall(SYS_gettid) == getpid() ? 1 : 2;
    if (strncmp(path, control->prefix, strlen(control->prefix))) return NONE;
    if (control->lane && lane != control->lane) return NONE;
    if (control->tracing) note(op, class, lane, path, other);
    long number = __sync_add_and_fetch(&control->count, 1);
    if (!control->at || number < control->at) return NONE;
    if (number > control->at && !(control->sticky && (class & control->classes))) return NONE;
    if (number == control->at) control->hit = 1;
    if (control->kind == KILL) syscall(SYS_kill, getpid(), SIGKILL);
    if (control->kind == FAIL) errno = control->error;
    return control->kind;
}

#define CHECK(op, class, at, name, failed) \
    if (ON) { \
        char path[PATH]; \
        find(path, at, name); \
        if (fate(op, class, path, NULL) == FAIL) return failed; \
    }

#define OPENS(function, at, AT_PARAMETER, AT_ARGUMENT) \
    int function(AT_PARAMETER const char *name, int flags, ...) { \
        va_list rest; \
        va_start(rest, flags); \
        int mode = va_arg(rest, int); \
        va_end(rest); \
        static int (*real)(AT_PARAMETER const char *, int, ...); \
        if (!real) real = (int (*)(AT_PARAMETER const char *, int, ...))dlsym(RTLD_NEXT, #function); \
        CHECK(flags & O_CREAT ? "create" : "open", flags & (O_CREAT | O_TRUNC) ? WRITES : READS, at, name, -1) \
        return real(AT_ARGUMENT name, flags, mode); \
    }
#define COMMA ,
OPENS(open, AT_FDCWD, , )
OPENS(open64, AT_FDCWD, , )
OPENS(openat, at, int at COMMA, at COMMA)
OPENS(openat64, at, int at COMMA, at COMMA)

/* Half of the bytes for SHORT and TORN. */
#define MOVES(result, function, op, class, CONST, MORE_PARAMETERS, MORE_ARGUMENTS) \
    result function(int fd, CONST void *data, size_t size MORE_PARAMETERS) { \
        REAL(result, function, int, CONST void *, size_t MORE_PARAMETERS); \
        if (ON) { \
            char path[PATH]; \
            find(path, fd, NULL); \
            int kind = fate(op, class, path, NULL); \
            if (kind == FAIL) return -1; \
            if ((kind == SHORT || kind == TORN) && size > 1) size /= 2; \
            if (kind == TORN) { \
                real(fd, data, size MORE_ARGUMENTS); \
                syscall(SYS_kill, getpid(), SIGKILL); \
            } \
        } \
        return real(fd, data, size MORE_ARGUMENTS); \
    }
MOVES(ssize_t, read, "read", READS, , , )
MOVES(ssize_t, pread, "read", READS, , COMMA off_t offset, COMMA offset)
MOVES(ssize_t, pread64, "read", READS, , COMMA off_t offset, COMMA offset)
MOVES(ssize_t, write, "write", WRITES, const, , )
MOVES(ssize_t, pwrite, "write", WRITES, const, COMMA off_t offset, COMMA offset)
MOVES(ssize_t, pwrite64, "write", WRITES, const, COMMA off_t offset, COMMA offset)

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(ssize_t, writev, int, const struct iovec *, int);
    CHECK("write", WRITES, fd, NULL, -1)
    return real(fd, parts, count);
}

#define GATHERS(function) \
    ssize_t function(int fd, const struct iovec *parts, int count, off_t offset) { \
        REAL(ssize_t, function, int, const struct iovec *, int, off_t); \
        CHECK("readv", READS, fd, NULL, -1) \
        return real(fd, parts, count, offset); \
    }
GATHERS(preadv)
GATHERS(preadv64)

#define BY_FD(function, op, class) \
    int function(int fd) { \
        REAL(int, function, int); \
        CHECK(op, class, fd, NULL, -1) \
        return real(fd); \
    }
BY_FD(fsync, "fsync", SYNCS)
BY_FD(fdatasync, "fsync", SYNCS)

int close(int fd) { /* closes in any case, as Linux does */
    REAL(int, close, int);
    int failed = 0;
    if (ON) {
        char path[PATH];
        find(path, fd, NULL);
        failed = fate("close", CLOSES, path, NULL) == FAIL;
    }
    int result = real(fd);
    if (failed) errno = control->error;
    return failed ? -1 : result;
}

#define BY_NAME(function, op, class, PARAMETERS, ARGUMENTS, at) \
    int function PARAMETERS { \
        static int (*real) PARAMETERS; \
        if (!real) real = (int (*) PARAMETERS)dlsym(RTLD_NEXT, #function); \
        CHECK(op, class, at, name, -1) \
        return real ARGUMENTS; \
    }
BY_NAME(mkdir, "mkdir", WRITES, (const char *name, mode_t mode), (name, mode), AT_FDCWD)
BY_NAME(mkdirat, "mkdir", WRITES, (int at, const char *name, mode_t mode), (at, name, mode), at)
BY_NAME(rmdir, "rmdir", REMOVES, (const char *name), (name), AT_FDCWD)
BY_NAME(unlink, "unlink", REMOVES, (const char *name), (name), AT_FDCWD)
BY_NAME(unlinkat, flags & AT_REMOVEDIR ? "rmdir" : "unlink", REMOVES, (int at, const char *name, int flags),
        (at, name, flags), at)
BY_NAME(truncate64, "truncate", WRITES, (const char *name, off_t size), (name, size), AT_FDCWD)

#define CUTS(function) \
    int function(int fd, off_t size) { \
        REAL(int, function, int, off_t); \
        CHECK("truncate", WRITES, fd, NULL, -1) \
        return real(fd, size); \
    }
CUTS(ftruncate)
CUTS(ftruncate64)

#define LOOKS(function, TYPE) \
    int function(const char *name, struct TYPE *found) { \
        static int (*real)(const char *, struct TYPE *); \
        if (!real) real = (int (*)(const char *, struct TYPE *))dlsym(RTLD_NEXT, #function); \
        CHECK("stat", READS, AT_FDCWD, name, -1) \
        return real(name, found); \
    }
LOOKS(stat, stat)
LOOKS(lstat, stat)
LOOKS(stat64, stat64)
LOOKS(lstat64, stat64)
LOOKS(statvfs, statvfs)
LOOKS(statvfs64, statvfs64)

#define LOOKS_AT(function, TYPE) \
    int function(int at, const char *name, struct TYPE *found, int flags) { \
        REAL(int, function, int, const char *, struct TYPE *, int); \
        CHECK("stat", READS, at, name, -1) \
        return real(at, name, found, flags); \
    }
LOOKS_AT(fstatat, stat)
LOOKS_AT(fstatat64, stat64)

#define LOOKS_IN(function, TYPE) \
    int function(int fd, struct TYPE *found) { \
        REAL(int, function, int, struct TYPE *); \
        CHECK("stat", READS, fd, NULL, -1) \
        return real(fd, found); \
    }
LOOKS_IN(fstat, stat)
LOOKS_IN(fstat64, stat64)

int flock(int fd, int operation) {
    REAL(int, flock, int, int);
    CHECK("flock", READS, fd, NULL, -1)
    return real(fd, operation);
}

#define LISTS(function, TYPE) \
    struct TYPE *function(DIR *folder) { \
        static struct TYPE *(*real)(DIR *); \
        if (!real) real = (struct TYPE * (*)(DIR *)) dlsym(RTLD_NEXT, #function); \
        CHECK("list", READS, dirfd(folder), NULL, NULL) \
        return real(folder); \
    }
LISTS(readdir, dirent)
LISTS(readdir64, dirent64)

DIR *opendir(const char *name) {
    REAL(DIR *, opendir, const char *);
    CHECK("open", READS, AT_FDCWD, name, NULL)
    return real(name);
}

#define RENAMES(function, PARAMETERS, ARGUMENTS, from, to, op) \
    int function PARAMETERS { \
        static int (*real) PARAMETERS; \
        if (!real) real = (int (*) PARAMETERS)dlsym(RTLD_NEXT, #function); \
        if (ON) { \
            char path[PATH], other[PATH]; \
            find(path, from, old); \
            find(other, to, new); \
            if (fate(op, WRITES, path, other) == FAIL) return -1; \
        } \
        return real ARGUMENTS; \
    }
RENAMES(rename, (const char *old, const char *new), (old, new), AT_FDCWD, AT_FDCWD, "rename")
RENAMES(renameat, (int from, const char *old, int to, const char *new), (from, old, to, new), from, to, "rename")
RENAMES(renameat2, (int from, const char *old, int to, const char *new, unsigned flags), (from, old, to, new, flags),
        from, to, flags & 2 ? "exchange" : "rename")
