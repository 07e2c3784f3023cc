// WASI preview 1 as programs with a C library see it: a command whose `main` runs once, and whose functions are called after it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { FieldList, type GuestMessages, HttpGuest, compileHttpModule } from "@platform/wasm/http";
import { assemble, writeGuest } from "@platform/testing/guests";

const module = compileHttpModule(readFileSync(new URL("guests/wasi-c.wasm", import.meta.url)));

function start(bytes = module) {
  const lines: string[] = [];
  const guest = new HttpGuest(bytes, {
    config: Buffer.alloc(0),
    fuelPerCall: 5_000_000,
    log: (level, text) => void lines.push(`${level} ${text}`),
    isLogged: () => true,
  });
  return { guest, lines };
}

const messages: GuestMessages = {
  method: "GET",
  uri: "/",
  protocolVersion: "HTTP/1.1",
  sourceAddress: "",
  status: 200,
  requestFields: new FieldList(),
  responseFields: new FieldList(),
  readRequestBody: () => ({ bytes: Buffer.alloc(0), isLast: true }),
  readResponseBody: () => Buffer.alloc(0),
  requestBodyBytesMax: 0,
  responseBodyBytesMax: 0,
};

/** Lines in which the program reports its environment. */
const reportOf = (where: string): string[] => [
  `-1 ${where}: random differs, PATH unset`,
  `-1 ${where}: time now`,
  `-1 ${where}: slept 0, an hour passed`,
  `-1 ${where}: poll 1, yield 0`,
  `-1 ${where}: open -1, errno set`,
  `-1 ${where}: stat 0, stdin 0, seek -1`,
  `-1 ${where}: standard error`,
];

test("main runs once, and its environment is that of each call", async () => {
  const { guest, lines } = start();
  assert.deepEqual(lines.splice(0), ["-1 main: 0 arguments", ...reportOf("main")]);
  const startedMs = performance.now();
  for (const where of ["first request", "later request", "later request"]) {
    assert.deepEqual(await guest.handleRequest(messages), { next: true, context: 0 });
    await guest.handleResponse(messages, 0, false);
    guest.endRequest();
    assert.deepEqual(lines.splice(0), reportOf(where));
  }
  // Three hours, for the program.
  assert.ok(performance.now() - startedMs < 60_000);
});

test("a program that exits within a call has failed, whatever its code", () => {
  const { guest } = start();
  void guest.handleRequest(messages);
  assert.throws(() => guest.handleResponse(messages, 9, false), {
    code: "exited",
    message: "The guest exited with code 0.",
  });
  assert.equal(guest.isReusable, false);
});

/** Imports that runtimes of languages link in, whether they call them or not. */
const LINKED: Readonly<Record<string, string>> = {
  tinygo:
    "args_get args_sizes_get clock_time_get environ_get environ_sizes_get fd_close fd_fdstat_get fd_fdstat_set_flags fd_filestat_get fd_pread fd_prestat_dir_name fd_prestat_get fd_read fd_readdir fd_seek fd_write path_create_directory path_filestat_get path_open path_remove_directory path_unlink_file poll_oneoff proc_exit random_get sched_yield",
  go: "args_get args_sizes_get clock_time_get environ_get environ_sizes_get fd_close fd_datasync fd_fdstat_get fd_fdstat_set_flags fd_filestat_get fd_filestat_set_size fd_filestat_set_times fd_pread fd_prestat_dir_name fd_prestat_get fd_pwrite fd_read fd_readdir fd_renumber fd_seek fd_sync fd_tell fd_write path_create_directory path_filestat_get path_filestat_set_times path_link path_open path_readlink path_remove_directory path_rename path_symlink path_unlink_file poll_oneoff proc_exit random_get sched_yield sock_accept sock_shutdown",
  rust: "args_get args_sizes_get clock_time_get environ_get environ_sizes_get fd_advise fd_allocate fd_close fd_datasync fd_fdstat_get fd_fdstat_set_flags fd_filestat_get fd_filestat_set_size fd_filestat_set_times fd_pread fd_prestat_dir_name fd_prestat_get fd_pwrite fd_read fd_readdir fd_renumber fd_seek fd_sync fd_tell fd_write path_create_directory path_filestat_get path_filestat_set_times path_link path_open path_readlink path_remove_directory path_rename path_symlink path_unlink_file poll_oneoff proc_exit random_get sched_yield sock_accept sock_recv sock_send sock_shutdown",
};
for (const [language, names] of Object.entries(LINKED)) {
  test(`what the runtime of ${language} links in is there`, () => {
    const imports = names
      .split(" ")
      .map((name) => `(import "wasi_snapshot_preview1" "${name}" (func (result i32)))`);
    const text = writeGuest().replace("(module", `(module ${imports.join("\n")}`);
    start(compileHttpModule(assemble(text)));
  });
}
