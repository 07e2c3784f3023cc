// Exports and imports of guests, and the two calling conventions.
import { GuestError } from "../errors.ts";

/**
 * Calling convention of a guest.
 *
 * - `command`: a WASI preview 1 command (`_start`): input on stdin, result on stdout, exit code 0.
 * - `transform`: `alloc(len: i32) → ptr: i32` and `transform(ptr: i32, len: i32) → i64`; the result is
 *   `ptr << 32 | len` in the exported `memory`. `_initialize` is called first if it is exported.
 */
export type GuestAbi = "command" | "transform";

/** Import and export kinds of the binary format (section 5.5.5). */
export const FUNCTION_KIND = 0;
const MEMORY_KIND = 2;

/** The only module from which a guest may import functions. */
export const WASI_MODULE = "wasi_snapshot_preview1";

/** The functions of WASI preview 1 that a guest may import; functions on files return an error. */
export const WASI_FUNCTIONS: ReadonlySet<string> = new Set(
  `args_get args_sizes_get environ_get environ_sizes_get
  clock_res_get clock_time_get random_get sched_yield poll_oneoff proc_exit proc_raise
  fd_advise fd_allocate fd_close fd_datasync fd_fdstat_get fd_fdstat_set_flags fd_fdstat_set_rights
  fd_filestat_get fd_filestat_set_size fd_filestat_set_times fd_pread fd_prestat_dir_name fd_prestat_get
  fd_pwrite fd_read fd_readdir fd_renumber fd_seek fd_sync fd_tell fd_write
  path_create_directory path_filestat_get path_filestat_set_times path_link path_open path_readlink
  path_remove_directory path_rename path_symlink path_unlink_file
  sock_accept sock_recv sock_send sock_shutdown`.split(/\s+/),
);

/** The calling convention of a module with these exports; throws `unsupported-module` if there is no known one. */
export function findAbi(exports: ReadonlyMap<string, number>): GuestAbi {
  const isFunction = (name: string) => exports.get(name) === FUNCTION_KIND;
  if (exports.get("memory") !== MEMORY_KIND)
    throw new GuestError("unsupported-module", "The module exports no memory named `memory`.");
  if (isFunction("alloc") && isFunction("transform")) return "transform";
  if (isFunction("_start")) return "command";
  throw new GuestError(
    "unsupported-module",
    "The module exports neither `_start` (a WASI command) nor `alloc` and `transform`.",
  );
}
