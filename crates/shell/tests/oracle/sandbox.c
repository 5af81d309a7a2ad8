/* The sandbox of the execve oracle, and the only program in it beside bash.
 *
 * As `driver ROOT`: reads lines (u32 length, u8 exit status of programs, bytes), runs each under bash in namespaces of
 * its own (mounts, processes, network, IPC) on a read-only root with a fresh memory file system to write to, where
 * files have hostile names, as
 * a user with no rights and small limits, and answers (u32 length, u8 timed out, log).
 * Under any other name: a program that writes its argv to descriptor 250 and ends. As `bash` or `sh` it then becomes
 * bash, so that what a shell is told to run is seen too; as `echo` it prints, as others it prints the word `out`.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOG = 250, USER_ID = 61234, MAX_LOG = 1 << 18 };

static void must(int failed, const char *what) {
    if (failed) {
        fprintf(stderr, "oracle sandbox: %s: %s\n", what, strerror(errno));
        _exit(111);
    }
}

static const char *base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int program(int argc, char **argv) {
    const char *file = (const char *)getauxval(AT_EXECFN);
    if (!file) file = "";
    size_t size = strlen(file) + 32;
    for (int i = 0; i < argc; i++) size += strlen(argv[i]) + 1;
    char *record = malloc(size);
    if (!record) return 1;
    size_t at = sprintf(record, "P%d", argc) + 1;
    memcpy(record + at, file, strlen(file) + 1);
    at += strlen(file) + 1;
    for (int i = 0; i < argc; i++) {
        memcpy(record + at, argv[i], strlen(argv[i]) + 1);
        at += strlen(argv[i]) + 1;
    }
    /* One write, so that records of programs that run at once do not mix. */
    if (write(LOG, record, at) != (ssize_t)at) return 1;
    const char *name = base(file);
    if (!strcmp(name, "bash") || !strcmp(name, "sh")) {
        execv("/bin/.bash", argv);
        return 126;
    }
    if (!strcmp(name, "echo")) {
        for (int i = 1; i < argc; i++) printf("%s%s", i > 1 ? " " : "", argv[i]);
        printf("\n");
    } else {
        printf("out\n");
    }
    const char *status = getenv("ORACLE_EXIT");
    return status ? atoi(status) : 0;
}

static void limit(int what, rlim_t most) {
    struct rlimit value = {most, most};
    must(setrlimit(what, &value) != 0, "setrlimit");
}

static void shell(char *line, int status) {
    limit(RLIMIT_CPU, 1);
    limit(RLIMIT_AS, 256 << 20);
    limit(RLIMIT_FSIZE, MAX_LOG);
    limit(RLIMIT_NPROC, 64);
    limit(RLIMIT_NOFILE, 256);
    limit(RLIMIT_CORE, 0);
    must(setgid(USER_ID) != 0 || setuid(USER_ID) != 0, "setuid");
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0, "no_new_privs");
    must(chdir("/w/cwd") != 0, "chdir");
    char exit_status[32];
    snprintf(exit_status, sizeof exit_status, "ORACLE_EXIT=%d", status);
    char *environment[] = {
        "PATH=/bin", "HOME=/w/home", "USER=u", "LC_ALL=C.UTF-8", exit_status,
        /* Programs without a file of their own are seen here. */
        "BASH_FUNC_command_not_found_handle%%=() { builtin printf '%s\\0' \"H$#\" \"$@\" >&250; builtin echo out; return $ORACLE_EXIT; }",
        NULL};
    char *arguments[] = {"bash", "-c", line, NULL};
    execve("/bin/.bash", arguments, environment);
    _exit(112);
}

static void out_of_time(int signal) {
    (void)signal;
    _exit(99); /* The kernel ends whatever else is left in this namespace. */
}

/* The first process of a line's namespaces: gone when everything the line started is gone. */
static void first(char *line, int status, int log) {
    must(mount("oracle", "/w", "tmpfs", MS_NOSUID | MS_NODEV, "size=2m,mode=0777") != 0, "mount /w");
    must(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL) != 0, "mount /proc");
    const char *folders[] = {"/w/cwd", "/w/tmp", "/w/etc", "/w/home", "/w/cwd/dir"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        must(mkdir(folders[i], 0777) != 0 || chmod(folders[i], 0777) != 0, "mkdir");
    }
    must(symlink("/bin/.program", "/w/cwd/run.sh") != 0, "symlink");
    /* Names that are code to whoever evaluates them, options to whoever takes them, several words to whoever splits. */
    const char *names[] = {
        "a[$(evil)]", "a[`evil`]", "x[$(evil)].txt", "b[$(evil a b)]", "-va[$(evil)]", "-v", "--help", "-n", "$(evil)", "`evil`",
        "q -o -v a[$(evil)]", "-v a[$(evil)] -o q", "n\na[$(evil)]", "1,a[$(evil)]", "* ?", "a b", "x=a[$(evil)]", "; evil", "dir/a[$(evil)]",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[128];
        snprintf(path, sizeof path, "/w/cwd/%s", names[i]);
        int file = open(path, O_WRONLY | O_CREAT, 0666);
        must(file < 0 || write(file, names[i], strlen(names[i])) < 0 || close(file) < 0, "a file with a hostile name");
    }
    signal(SIGALRM, out_of_time);
    struct itimerval patience = {{0, 0}, {2, 0}};
    setitimer(ITIMER_REAL, &patience, NULL);
    pid_t main_shell = fork();
    must(main_shell < 0, "fork");
    if (main_shell == 0) {
        setsid();
        int null = open("/dev/null", O_RDWR);
        must(null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0, "null");
        must(dup2(log, LOG) < 0, "log");
        if (log != LOG) close(log);
        if (null > 2) close(null);
        shell(line, status);
    }
    for (;;) {
        pid_t ended = waitpid(-1, NULL, 0);
        if (ended < 0 && errno == ECHILD) _exit(0);
        if (ended == main_shell) {
            struct itimerval rest = {{0, 0}, {0, 300000}};
            setitimer(ITIMER_REAL, &rest, NULL);
        }
    }
}

static int whole(int fd, void *buffer, size_t size, int out) {
    for (size_t at = 0; at < size;) {
        ssize_t step = out ? write(fd, (char *)buffer + at, size - at) : read(fd, (char *)buffer + at, size - at);
        if (step <= 0) return 0;
        at += step;
    }
    return 1;
}

static void prepare(const char *root) {
    must(unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) != 0, "unshare (needs root)");
    must(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0, "private mounts");
    must(mount(root, root, NULL, MS_BIND, NULL) != 0, "bind");
    must(chdir(root) != 0, "chdir");
    must(chroot(root) != 0 || chdir("/") != 0, "chroot");
    must(mknod("/dev/null", S_IFCHR | 0666, makedev(1, 3)) != 0 || chmod("/dev/null", 0666) != 0, "mknod");
    must(mount(NULL, "/", NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID, NULL) != 0, "read-only root");
}

int main(int argc, char **argv) {
    if (argc < 2 || strcmp(base(argv[0]), "driver")) return program(argc, argv);
    prepare(argv[1]);
    uint32_t size;
    while (whole(0, &size, sizeof size, 0)) {
        unsigned char status;
        char *line = calloc(1, size + 1);
        must(!line || !whole(0, &status, 1, 0) || !whole(0, line, size, 0), "a line is cut short");
        int log = memfd_create("log", 0);
        must(log < 0, "memfd");
        pid_t child = syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0);
        must(child < 0, "clone");
        if (child == 0) first(line, status, log);
        int ended = 0;
        must(waitpid(child, &ended, 0) < 0, "wait");
        int code = WIFEXITED(ended) ? WEXITSTATUS(ended) : 111;
        must(code != 0 && code != 99, "the line's sandbox could not be made");
        off_t length = lseek(log, 0, SEEK_END);
        uint32_t logged = length > MAX_LOG ? MAX_LOG : (uint32_t)length;
        char *text = malloc(logged + 1);
        must(!text || lseek(log, 0, SEEK_SET) != 0 || !whole(log, text, logged, 0), "log");
        unsigned char late = code == 99;
        must(!whole(1, &logged, sizeof logged, 1) || !whole(1, &late, 1, 1) || !whole(1, text, logged, 1), "answer");
        close(log);
        free(line);
        free(text);
    }
    return 0;
}
