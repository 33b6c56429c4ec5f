/* A plugin of QEMU that counts the instructions of an emulated program. Whenever the program closes the file descriptor
 * MARK, which does not exist, the count is appended to a file as a line: qemu-... -plugin ./count.so,marks=FILE ...
 *
 * The declarations are those of QEMU's qemu-plugin.h, version 1, which Debian's package leaves out. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARK = -24301, ADD = 0 };
typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, void (*call)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *block, int operation, void *to, uint64_t value);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id, void (*call)(qemu_plugin_id_t, unsigned, int64_t, uint64_t,
    uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;
static uint64_t count; /* of all threads, without a lock: programs are to compute on one */
static const char *path;

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(block, ADD, &count, qemu_plugin_tb_n_insns(block));
}
static void called(qemu_plugin_id_t id, unsigned processor, int64_t number, uint64_t first, uint64_t a2, uint64_t a3,
                   uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
    (void)id, (void)processor, (void)number, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    if ((int32_t)first != MARK)
        return;
    FILE *file = fopen(path, "a");
    if (!file || fprintf(file, "%" PRIu64 "\n", count) < 0 || fclose(file))
        abort();
}
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int arguments, char **argument) {
    (void)info;
    if (arguments != 1 || strncmp(argument[0], "marks=", 6))
        return 1;
    path = argument[0] + 6;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_vcpu_syscall_cb(id, called);
    return 0;
}
