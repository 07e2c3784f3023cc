// Configuration from a git repository: fetches its branch, checks the new commit, and merges it only if it is valid. A bad commit
// is never what the next start reads.
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { PlatformError } from "@platform/kernel/errors";
import { type ProgramEnd, runProgram } from "./run-program.ts";
import type { SourceView } from "./source-view.ts";

/** Outcome of a pull. */
export interface PullReport {
  status: "reloaded" | "unchanged" | "ignored";
  message: string;
  git_output: string;
}

/** Options of {@link GitSource}. */
export interface GitSourceOptions {
  /** Folder of the working tree, or one below it. */
  folder: string;
  /** Path of the configuration file. */
  configPath: string;
  /** Checks the configuration at another path, in a process of its own; resolves with its faults, undefined if it is valid. */
  validate: (path: string, signal: AbortSignal) => Promise<string | undefined>;
  /** Uses the merged configuration. Throws if it is refused. */
  reload: () => Promise<void>;
}

const TOTAL_MS = 30_000;
const OUTPUT_CHARACTERS_MAX = 64 * 1024;
/** Hooks, prompts and questions of ssh are off. */
const OPTIONS = ["-c", "core.hooksPath=/dev/null", "-c", "submodule.recurse=false"];
const ENVIRONMENT = {
  GIT_TERMINAL_PROMPT: "0",
  GIT_ASKPASS: "true",
  GIT_SSH_COMMAND: "ssh -o BatchMode=yes",
  GIT_CONFIG_NOSYSTEM: "1",
  LC_ALL: "C",
};
const MISSING = "git is not installed";

/** The repository of one gateway. One pull at a time; those that come meanwhile share the next one. */
export class GitSource {
  readonly #options: GitSourceOptions;
  #active: Promise<PullReport> | undefined;
  #next: Promise<PullReport> | undefined;
  #commit = "";
  #readAtMs: number | undefined;
  #fault: string | undefined;

  constructor(options: GitSourceOptions) {
    this.#options = options;
  }

  /** Pulls the current branch; `ref` is that of a push (`refs/heads/main`), undefined for any. */
  pull(ref: string | undefined): Promise<PullReport> {
    if (this.#active === undefined) return this.#begin(ref);
    this.#next ??= this.#active
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined;
        return this.#begin(ref);
      });
    return this.#next;
  }

  /** False before the first pull. */
  get isUsed(): boolean {
    return this.#readAtMs !== undefined || this.#fault !== undefined;
  }

  /** For `GET /api/v1/admin/sources`. */
  view(): SourceView {
    const { folder } = this.#options;
    const error = this.#fault;
    return { kind: "git", address: folder, version: this.#commit, readAtMs: this.#readAtMs, error };
  }

  #begin(ref: string | undefined): Promise<PullReport> {
    this.#active = this.#pull(ref)
      .then(
        (report) => {
          this.#fault = undefined;
          this.#readAtMs = Date.now();
          return report;
        },
        (error: unknown) => {
          this.#fault = error instanceof Error ? error.message : String(error);
          throw error;
        },
      )
      .finally(() => (this.#active = undefined));
    return this.#active;
  }

  async #pull(ref: string | undefined): Promise<PullReport> {
    const { folder } = this.#options;
    const git = new GitRun(folder, AbortSignal.timeout(TOTAL_MS));
    const top = (await git.run(["rev-parse", "--show-toplevel"])).trim();
    await this.#requireTracked(git);
    const branch = (await git.run(["symbolic-ref", "--short", "HEAD"])).trim();
    if (ref !== undefined && ref !== `refs/heads/${branch}`) {
      return git.report("ignored", `the branch is ${branch}, not that of ${ref}`);
    }
    const dirty = (await git.run(["status", "--porcelain", "--untracked-files=no"])).trim();
    if (dirty !== "") {
      throw new PlatformError("conflict", "the working tree has changes that are not committed");
    }
    await git.run(["fetch", "--no-tags", "--no-recurse-submodules", "origin", branch], "fetch");
    const before = (await git.run(["rev-parse", "HEAD"])).trim();
    const after = (await git.run(["rev-parse", "FETCH_HEAD"])).trim();
    this.#commit = before;
    if (before === after) return git.report("unchanged", `${branch} is at ${after}`);
    if (!(await git.succeeds(["merge-base", "--is-ancestor", before, after]))) {
      throw new PlatformError("conflict", `${branch} cannot be merged by fast-forward`);
    }
    await this.#check(git, top, after);
    await git.run(["merge", "--ff-only", after]);
    try {
      await this.#options.reload();
    } catch (error) {
      // The next start must not read it.
      await git.run(["reset", "--keep", before]);
      throw error;
    }
    this.#commit = after;
    return git.report("reloaded", `${branch} is at ${after}`);
  }

  // A data folder may lie in the working tree of something else, which is not this gateway's to pull.
  async #requireTracked(git: GitRun): Promise<void> {
    const path = await this.#locateConfig().catch(() => undefined);
    if (path !== undefined && (await git.succeeds(["ls-files", "--error-unmatch", "--", path]))) {
      return;
    }
    throw new PlatformError(
      "conflict",
      `${this.#options.configPath} is not a file of a git repository: commit it, or set gitops.dir to the clone that has it`,
    );
  }

  async #locateConfig(): Promise<string> {
    const { configPath } = this.#options;
    return join(await realpath(dirname(configPath)), basenameOf(configPath));
  }

  async #check(git: GitRun, top: string, commit: string): Promise<void> {
    const { validate } = this.#options;
    const parent = await mkdtemp(join(tmpdir(), "platform-gate-git-"));
    const tree = join(parent, "tree");
    const inside = relative(top, await this.#locateConfig());
    try {
      await git.run(["worktree", "add", "--detach", tree, commit]);
      const faults = await validate(join(tree, inside), git.signal);
      if (faults === undefined) return;
      throw new PlatformError("validation_failed", faults.replaceAll(`${tree}/`, ""));
    } finally {
      await git.succeeds(["worktree", "remove", "--force", tree]);
      await rm(parent, { recursive: true, force: true });
    }
  }
}

function basenameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** The commands of one pull, with their output. */
class GitRun {
  readonly signal: AbortSignal;
  readonly #folder: string;
  #output = "";

  constructor(folder: string, signal: AbortSignal) {
    this.#folder = folder;
    this.signal = signal;
  }

  report(status: PullReport["status"], message: string): PullReport {
    return { status, message, git_output: cutCredentials(this.#output) };
  }

  async succeeds(args: readonly string[]): Promise<boolean> {
    return (await this.#spawn(args)).code === 0;
  }

  /** Returns the standard output. A failure is a conflict, of a fetch that the remote cannot be reached. */
  async run(args: readonly string[], kind: "local" | "fetch" = "local"): Promise<string> {
    const { code, stdout, stderr } = await this.#spawn(args);
    if (this.signal.aborted) {
      throw new PlatformError("upstream_timeout", `git did not end within ${TOTAL_MS / 1_000} s`);
    }
    if (code === 0) return stdout;
    const detail = `git ${args[0]}: ${cutCredentials(stderr).trim().slice(0, 500)}`;
    throw new PlatformError(kind === "fetch" ? "upstream_unreachable" : "conflict", detail);
  }

  async #spawn(args: readonly string[]): Promise<ProgramEnd> {
    const onOutput = (text: string): void => {
      this.#output = (this.#output + text).slice(0, OUTPUT_CHARACTERS_MAX);
    };
    const all = [...OPTIONS, "-C", this.#folder, ...args];
    try {
      return await runProgram("git", all, { env: ENVIRONMENT, signal: this.signal, onOutput });
    } catch (cause) {
      throw new PlatformError("not_implemented", MISSING, { cause });
    }
  }
}

/** Removes user names and passwords of URLs. */
function cutCredentials(text: string): string {
  return text.replace(/\/\/[^/@\s]{1,1000}@/g, "//***@");
}
