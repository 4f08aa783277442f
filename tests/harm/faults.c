/* Makes the k-th change of a folder fail, or the last: preloaded into the processes under test.

   Calls that change files below a folder are counted: writes, syncs, renames, removals, truncations
   and creations.  What becomes of the one that is chosen is said in a file that is mapped into
   memory and shared with whoever asks (`struct plan`, written by crash_children.py).  With a
   journal, what every call does is added to a file of its own, from which crash_power.py makes the
   disk that a loss of power would have left.

   cc -shared -fPIC -O1 -o faults.so faults.c -ldl */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHOWN 64
#define RECORDS 8192

enum { COUNT = 0, KILL = 1, TEAR = 2, FAIL = 3, FULL = 4, SIGNAL = 5 };

struct plan {
    int64_t armed;   /* calls are counted */
    int64_t mode;    /* what becomes of the chosen call */
    int64_t at;      /* its number, from 1 */
    int64_t error;   /* errno of a call that fails, or the signal that comes with it */
    int64_t count;   /* calls so far */
    int64_t hit;     /* calls that failed */
    int64_t journal; /* what is done is noted down */
    char root[1024];
    char journal_path[1024];
    char records[RECORDS][SHOWN]; /* per call: a letter and the name of the file */
};

static struct plan *plan;
static int journal = -1;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("EVENRANK_FAULTS");
    int file = path ? syscall(SYS_openat, AT_FDCWD, path, O_RDWR, 0) : -1;
    if (file < 0)
        return;
    void *found = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    plan = found == MAP_FAILED ? NULL : found;
}

static int below(const char *path)
{
    size_t length = strlen(plan->root);
    return length && !strncmp(path, plan->root, length) && (path[length] == '/' || !path[length]);
}

/* Whether a call on a path or a file is one of ours; gives the path. */
static int named(const char *path, char *whole)
{
    if (!plan || !plan->armed)
        return 0;
    if (path[0] == '/')
        strncpy(whole, path, PATH_MAX - 1);
    else {
        if (!getcwd(whole, PATH_MAX - 1))
            return 0;
        strncat(whole, "/", PATH_MAX - strlen(whole) - 1);
        strncat(whole, path, PATH_MAX - strlen(whole) - 1);
    }
    whole[PATH_MAX - 1] = 0;
    return below(whole);
}

static int opened(int file, char *whole)
{
    char link[64] = "/proc/self/fd/", digits[16];
    int at = 0;
    if (!plan || !plan->armed || file < 0)
        return 0;
    for (int rest = file; rest || !at; rest /= 10)
        digits[at++] = '0' + rest % 10;
    for (int to = 14; at;)
        link[to++] = digits[--at], link[to] = 0;
    ssize_t length = readlink(link, whole, PATH_MAX - 1);
    if (length < 0)
        return 0;
    whole[length] = 0;
    return below(whole);
}

static void die(void)
{
    syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    for (;;)
        pause();
}

/* Count a call. 0: let it happen; 1: half of it, then die; 2: half of it; -1: it fails. */
static int counted(char letter, const char *path)
{
    int64_t number = __atomic_add_fetch(&plan->count, 1, __ATOMIC_SEQ_CST);
    const char *name = strrchr(path, '/');
    if (number <= RECORDS) {
        char *record = plan->records[number - 1];
        record[0] = letter;
        strncpy(record + 1, name ? name + 1 : path, SHOWN - 2);
        record[SHOWN - 1] = 0;
    }
    int grows = letter == 'w' || letter == 'c';
    if (plan->mode == COUNT || number < plan->at)
        return 0;
    if (number > plan->at && plan->mode != FULL)
        return 0;
    if (plan->mode == KILL)
        die();
    if (plan->mode == TEAR)
        return 1;
    if (plan->mode == SIGNAL) {
        syscall(SYS_kill, syscall(SYS_getpid), plan->error);
        return 0;
    }
    if (plan->mode == FULL && !grows)
        return 0;
    __atomic_add_fetch(&plan->hit, 1, __ATOMIC_SEQ_CST);
    if (plan->mode == FULL && number == plan->at && letter == 'w')
        return 2;
    errno = plan->error;
    return -1;
}

/* -- the journal: letter, length of path, second path, offset, length of data, then these */

static void note(char letter, const char *path, const char *other, int64_t offset,
                 const void *data, int64_t size)
{
    if (!plan || !plan->journal)
        return;
    if (journal < 0)
        journal = syscall(SYS_openat, AT_FDCWD, plan->journal_path,
                          O_WRONLY | O_CREAT | O_APPEND, 0600);
    int64_t head[5] = {letter, strlen(path), other ? strlen(other) : 0, offset, data ? size : 0};
    syscall(SYS_write, journal, head, sizeof head);
    syscall(SYS_write, journal, path, head[1]);
    if (other)
        syscall(SYS_write, journal, other, head[2]);
    if (data)
        syscall(SYS_write, journal, data, size);
}

/* -- the calls */

static int64_t position(int file)
{
    int flags = syscall(SYS_fcntl, file, F_GETFL);
    return syscall(SYS_lseek, file, 0, flags & O_APPEND ? SEEK_END : SEEK_CUR);
}

static ssize_t written(int file, const void *data, size_t size, int64_t offset, int seeks)
{
    char path[PATH_MAX];
    int ours = opened(file, path), fate = ours ? counted('w', path) : 0;
    if (fate < 0)
        return -1;
    size_t part = fate ? size / 2 : size;
    int64_t at = !ours ? 0 : seeks ? position(file) : offset;
    ssize_t done = seeks ? syscall(SYS_write, file, data, part)
                         : syscall(SYS_pwrite64, file, data, part, offset);
    if (fate == 1)
        die();
    if (ours && done > 0)
        note('w', path, NULL, at, data, done);
    return done;
}

ssize_t write(int file, const void *data, size_t size) { return written(file, data, size, 0, 1); }

ssize_t pwrite(int file, const void *data, size_t size, off_t offset)
{
    return written(file, data, size, offset, 0);
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t offset)
{
    return written(file, data, size, offset, 0);
}

/* Copies go through write, where they are counted. */
ssize_t sendfile(int to, int from, off_t *offset, size_t size)
{
    char path[PATH_MAX];
    if (!opened(to, path))
        return syscall(SYS_sendfile, to, from, offset, size);
    errno = EINVAL;
    return -1;
}

ssize_t sendfile64(int to, int from, off64_t *offset, size_t size)
{
    return sendfile(to, from, offset, size);
}

static int synced(long call, int file)
{
    char path[PATH_MAX];
    int ours = opened(file, path), fate = ours ? counted('s', path) : 0;
    if (fate < 0)
        return -1;
    int done = syscall(call, file);
    if (fate == 1)
        die();
    if (ours)
        note('s', path, NULL, 0, NULL, 0);
    return done;
}

int fsync(int file) { return synced(SYS_fsync, file); }
int fdatasync(int file) { return synced(SYS_fdatasync, file); }

int ftruncate(int file, off_t size)
{
    char path[PATH_MAX];
    int ours = opened(file, path), fate = ours ? counted('t', path) : 0;
    if (fate < 0)
        return -1;
    int done = syscall(SYS_ftruncate, file, size);
    if (fate == 1)
        die();
    if (ours)
        note('t', path, NULL, size, NULL, 0);
    return done;
}

int ftruncate64(int file, off64_t size) { return ftruncate(file, size); }

int rename(const char *old, const char *new)
{
    char from[PATH_MAX], to[PATH_MAX];
    int ours = named(new, to), fate = ours ? counted('r', to) : 0;
    if (fate < 0)
        return -1;
    int done = syscall(SYS_renameat2, AT_FDCWD, old, AT_FDCWD, new, 0);
    if (fate == 1)
        die();
    if (ours && !done && named(old, from))
        note('r', from, to, 0, NULL, 0);
    return done;
}

int unlink(const char *name)
{
    char path[PATH_MAX];
    int there = !access(name, F_OK);
    int ours = there && named(name, path), fate = ours ? counted('u', path) : 0;
    if (fate < 0)
        return -1;
    int done = syscall(SYS_unlinkat, AT_FDCWD, name, 0);
    if (fate == 1)
        die();
    if (ours && !done)
        note('u', path, NULL, 0, NULL, 0);
    return done;
}

static int made(int folder, const char *name, int flags, mode_t mode)
{
    char path[PATH_MAX];
    struct stat found;
    int near = folder == AT_FDCWD || name[0] == '/';
    int ours = near && flags & (O_CREAT | O_TRUNC) && named(name, path);
    int there = ours && !stat(name, &found);
    int changes = ours && (!there || (flags & O_TRUNC && found.st_size));
    int fate = changes ? counted('c', path) : 0;
    if (fate < 0)
        return -1;
    int done = syscall(SYS_openat, folder, name, flags, mode);
    if (fate == 1)
        die();
    if (changes && done >= 0)
        note('c', path, NULL, 0, NULL, 0);
    return done;
}

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    }

int open(const char *name, int flags, ...) { MODE(flags) return made(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...)
{
    MODE(flags) return made(AT_FDCWD, name, flags | O_LARGEFILE, mode);
}
int openat(int folder, const char *name, int flags, ...)
{
    MODE(flags) return made(folder, name, flags, mode);
}
int openat64(int folder, const char *name, int flags, ...)
{
    MODE(flags) return made(folder, name, flags | O_LARGEFILE, mode);
}
