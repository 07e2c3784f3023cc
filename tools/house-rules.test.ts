// The house rules that no other tool checks. Each failure names the file that breaks the rule.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { test, type TestContext } from "node:test";
import { findCommentOpenings } from "./comment-openings.ts";
import { findShortComments } from "./doc-comments.ts";
import { findLongFunctions, FUNCTION_LINES_MAX } from "./function-lengths.ts";
import { findImports as findSpecifiers, readAllModules } from "./modules.ts";
import { composeMatcherModule, readMatcherModule } from "./write-policy-matcher.ts";

const COMMIT_SUBJECT_CHARACTERS_MAX = 72;
// The platform's packages that each kind of package may import; see ARCHITECTURE.md.
const LAYERS: [folder: RegExp, allowed: RegExp][] = [
  [/^packages\/look$/, /^$/],
  [/^packages\/kernel$/, /^packages\/look$/],
  [/^packages\/(?:console|s3|service)$/, /^packages\/(?:kernel|http1|redis|look)$/],
  [/^packages\/chassis$/, /^packages\/(?:kernel|console|look)$/],
  [/^packages\/testing$/, /^packages\/(?:kernel|chassis)$/],
  [/^packages\/[^/]+$/, /^packages\/(?:kernel|look)$/],
  [/^apps\/[^/]+$/, /^packages\/(?:console|look)$/],
  [/^services\/runtime$/, /^(packages|services)\/[^/]+$/],
  [/^services\/[^/]+$/, /^packages\/[^/]+$/],
];
/** Imported by tests only. */
const TESTING = "packages/testing";

const allowances = JSON.parse(readFileSync("tools/house-allowances.json", "utf8")) as {
  /** Lengths of functions of more than 60 lines by file, longest first. All allowances may only fall. */
  longFunctions: Record<string, number[]>;
  /** Numbers of long functions of the other kinds, by folder and kind. */
  longLists: Record<string, number>;
  /** Numbers of comments that open with What, Who, Where, Whoever or How. */
  commentOpenings: Record<string, number>;
  /** Numbers of comments with no more words than the name below them. */
  shortComments: Record<string, number>;
  /** Numbers of imports of files of packages by path. */
  reachIns: Record<string, number>;
  /** The length of commit subjects is checked after this commit. */
  commitSubjectsAfter: string;
};
const packages = globSync("{packages,services,apps}/*/package.json")
  .map((path) => dirname(path))
  .sort();
const folderByName = new Map(
  packages.map((folder) => {
    const { name } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
      name: string;
    };
    return [name, folder];
  }),
);
const folders = [...packages, "bench", "tests", "tools", "examples", "bin"];
const sources = list("{packages,services,apps}/*/src/**/*.{ts,tsx}");
const modules = readAllModules();
const everything = list("{packages,services,apps,bench,tests,tools,examples,bin}/**/*.{ts,tsx,js}");

function list(pattern: string): string[] {
  return globSync(pattern, { exclude: ["**/node_modules/**", "apps/*/dist*/**"] }).sort();
}

function read(path: string): string {
  return readFileSync(path, "utf8");
}

function findImports(path: string): string[] {
  return findSpecifiers(read(path));
}

function findPackage(path: string): string | undefined {
  return packages.find((folder) => path.startsWith(`${folder}/`));
}

function folderOf(path: string): string {
  return findPackage(path) ?? path.slice(0, path.indexOf("/"));
}

/** Lines of each key above its allowance; says where an allowance can be lowered. */
function findExcess(
  t: TestContext,
  rule: "reachIns" | "longLists" | "commentOpenings" | "shortComments",
  found: ReadonlyMap<string, readonly string[]>,
): string[] {
  const allowed = allowances[rule];
  for (const [key, max] of Object.entries(allowed)) {
    const count = found.get(key)?.length ?? 0;
    if (count < max) t.diagnostic(`lower ${rule} of ${key} from ${max} to ${count}`);
  }
  return [...found].flatMap(([key, lines]) => {
    const max = allowed[key] ?? 0;
    return lines.length > max ? [`${key}: ${lines.length}, ${max} allowed`, ...lines] : [];
  });
}

test("no folder or file is named utils, helpers, common or misc", () => {
  const pattern = "{packages,services,apps,tests,tools,bench}/**/{utils,helpers,common,misc}{,.ts}";
  assert.deepEqual(list(pattern), []);
});

test("files and folders are kebab-case", () => {
  const bad = everything.filter(
    (path) =>
      !path.split("/").every((part) => /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9-]+)*$/.test(part)),
  );
  assert.deepEqual(bad, []);
});

test("each source file begins with a comment about its purpose", () => {
  const bad = sources.filter((path) => !/^(?:#!.*\n)?\/\/ \S.{8,}/.test(read(path)));
  assert.deepEqual(bad, []);
});

test("source files contain no open tasks", () => {
  // The brackets keep the words out of this file.
  const mark = /\b(?:TO[D]O|FIX[M]E|XX[X])\b/;
  assert.deepEqual(
    everything.filter((path) => mark.test(read(path))),
    [],
  );
});

test("sources log instead of writing to the console", () => {
  const bad = sources.filter((path) =>
    /^(?!\s*(?:\/\/|\*)).*\bconsole\.(?:log|error|warn|info|debug)\(/m.test(read(path)),
  );
  assert.deepEqual(bad, []);
});

test("packages import only lower packages: runtime, services, packages, kernel, look", () => {
  const bad: string[] = [];
  for (const path of list("{packages,services,apps}/*/{src,test}/**/*.{ts,tsx}")) {
    const folder = findPackage(path)!;
    const allowed = LAYERS.find(([kind]) => kind.test(folder))![1];
    for (const specifier of findImports(path)) {
      const name = /^@platform\/[^/]+/.exec(specifier)?.[0];
      const target = name === undefined ? undefined : folderByName.get(name);
      if (
        name !== undefined &&
        target !== folder &&
        (target === TESTING
          ? !path.startsWith(`${folder}/test/`)
          : target === undefined || !allowed.test(target))
      ) {
        bad.push(`${path}: ${specifier}`);
      }
    }
  }
  assert.deepEqual(bad, []);
});

test("pages import only the console's contract and the look from the platform's packages", () => {
  const bad = list("apps/*/src/**/*.{ts,tsx}").flatMap((path) =>
    findImports(path)
      .filter((specifier) => specifier.startsWith("@platform/"))
      .filter((specifier) => !/^@platform\/(?:console\/contract|look\/\w+\.css)$/.test(specifier))
      .map((specifier) => `${path}: ${specifier}`),
  );
  assert.deepEqual(bad, []);
  assert.deepEqual(findImports("packages/console/src/contract.ts"), []);
});

test("no relative import leaves its package", () => {
  const bad: string[] = [];
  for (const path of list("{packages,services,apps}/*/{src,test}/**/*.{ts,tsx}")) {
    for (const specifier of findImports(path).filter((item) => item.startsWith("."))) {
      const target = relative(".", resolve(dirname(path), specifier));
      if (findPackage(target) !== findPackage(path)) bad.push(`${path}: ${specifier}`);
    }
  }
  assert.deepEqual(bad, []);
});

test("each package declares all of its modules in order, top to bottom", () => {
  const bad = modules.flatMap(({ folder, order, sizes, isDeclared }) => {
    if (!isDeclared) return [`${folder}: package.json has no "modules"`];
    const missing = [...sizes.keys()].filter((name) => !order.includes(name));
    const unknown = order.filter((name) => !sizes.has(name));
    return [
      ...missing.map((name) => `${folder}: the module ${name} is not declared`),
      ...unknown.map((name) => `${folder}: the declared module ${name} does not exist`),
    ];
  });
  assert.deepEqual(bad, []);
});

test("a module imports only modules that are declared below it", () => {
  const bad = modules
    .filter(({ isDeclared }) => isDeclared)
    .flatMap(({ folder, upward }) =>
      upward.flatMap(({ from, to, imports }) =>
        imports.map(
          (one) => `${folder}/src/${one.from} imports ${one.to}: ${to} is not below ${from}`,
        ),
      ),
    );
  assert.deepEqual(bad, []);
});

test("files of a package do not form import cycles", () => {
  const bad = modules
    .filter(({ isDeclared }) => isDeclared)
    .flatMap(({ folder, fileRings }) =>
      fileRings.map((ring) => `${folder}/src: ${ring.join(", ")} import each other`),
    );
  assert.deepEqual(bad, []);
});

test("tests and benches import packages by name, and their files only where that is allowed", (t) => {
  const count = (folder: string): string[] =>
    list(`${folder}/**/*.{ts,js}`).flatMap((path) =>
      findImports(path)
        .filter((item) => item.startsWith("."))
        .map((specifier) => relative(".", resolve(dirname(path), specifier)))
        .filter((target) => findPackage(target) !== undefined)
        .map((target) => `${path} imports ${target}`),
    );
  const found = new Map(["tests", "bench"].map((folder) => [folder, count(folder)]));
  assert.deepEqual(findExcess(t, "reachIns", found), []);
  const others = ["packages", "services", "apps", "tools", "bin"];
  const bad = others.flatMap((folder) =>
    list(`${folder}/**/*.{ts,tsx,js}`).flatMap((path) =>
      findImports(path)
        .filter((item) => item.startsWith("."))
        .filter((item) => relative(".", resolve(dirname(path), item)).startsWith("tests/"))
        .map((specifier) => `${path}: ${specifier}`),
    ),
  );
  assert.deepEqual(bad, []);
});

test(`functions have at most ${FUNCTION_LINES_MAX} lines`, (t) => {
  const long = findLongFunctions(folders.filter((folder) => existsSync(folder)));
  const bad: string[] = [];
  const lengths = Map.groupBy(
    long.filter(({ kind }) => kind === "code"),
    ({ path }) => path,
  );
  for (const [path, functions] of lengths) {
    const allowed = allowances.longFunctions[path] ?? [];
    const found = functions.toSorted((one, other) => other.lines - one.lines);
    for (const [index, { line, lines }] of found.entries()) {
      const max = allowed[index] ?? FUNCTION_LINES_MAX;
      if (lines > max) bad.push(`${path}:${line}: ${lines} lines, ${max} allowed`);
    }
  }
  assert.deepEqual(bad, []);
  const lists = Map.groupBy(
    long.filter(({ kind }) => kind !== "code"),
    ({ path, kind }) => `${folderOf(path)}: ${kind}`,
  );
  const described = [...lists].map(([key, found]): [string, string[]] => [
    key,
    found.map(({ path, line, lines }) => `${path}:${line}: ${lines} lines`),
  ]);
  assert.deepEqual(findExcess(t, "longLists", new Map(described)), []);
});

test("comments open with a noun or a verb, not with What, Who, Where, Whoever or How", (t) => {
  const found = folders.map((folder): [string, string[]] => [
    folder,
    findCommentOpenings(folder).map(({ path, line, text }) => `${path}:${line}: ${text}`),
  ]);
  assert.deepEqual(findExcess(t, "commentOpenings", new Map(found)), []);
});

test("documentation comments say more than the name below them", (t) => {
  const found = folders.map((folder): [string, string[]] => [
    folder,
    findShortComments(folder).map(({ path, line, text }) => `${path}:${line}: ${text}`),
  ]);
  assert.deepEqual(findExcess(t, "shortComments", new Map(found)), []);
});

test("commit subjects have at most 72 characters", (t) => {
  const base = allowances.commitSubjectsAfter;
  if (spawnSync("git", ["merge-base", "--is-ancestor", base, "HEAD"]).status !== 0) {
    return t.skip(`there is no git history that contains ${base.slice(0, 12)}`);
  }
  const log = execFileSync("git", ["log", "--format=%h %s", `${base}..HEAD`], { encoding: "utf8" });
  const bad = log
    .split("\n")
    .filter((line) => line.replace(/^\w+ /, "").length > COMMIT_SUBJECT_CHARACTERS_MAX);
  assert.deepEqual(bad, []);
});

test("all packages have a README.md", () => {
  const bad = packages.filter((folder) => !existsSync(join(folder, "README.md")));
  assert.deepEqual(bad, []);
});

test("all bins of package.json exist and start the launcher", () => {
  const { bin } = JSON.parse(read("package.json")) as { bin: Record<string, string> };
  assert.deepEqual(
    Object.values(bin).sort(),
    list("bin/*.js").filter((path) => !/^bin\/(?:launch|built)\.js$/.test(path)),
  );
  for (const path of Object.values(bin)) {
    assert.match(
      read(path),
      /^#!\/usr\/bin\/env node\n[^]*await launch\(import\.meta\.url, "@platform\//,
      path,
    );
  }
});

test("packages have the version of the platform, or that of the specification: probes, logs and metrics show it", () => {
  const read = (path: string): unknown => JSON.parse(readFileSync(path, "utf8")).version;
  const specified = new Map([
    ["services/tunnel", "0.1.0"],
    ["services/vault", "2.0.0"],
  ]);
  const version = read("package.json");
  for (const folder of packages) {
    assert.equal(read(join(folder, "package.json")), specified.get(folder) ?? version, folder);
  }
});

test("the lock file contains no download URLs and no packages with install scripts", () => {
  const { packages: locked } = JSON.parse(read("package-lock.json")) as {
    packages: Record<string, { resolved?: string; hasInstallScript?: boolean; link?: boolean }>;
  };
  const bad = Object.entries(locked).flatMap(([path, { resolved, hasInstallScript, link }]) => [
    ...(resolved !== undefined && link !== true ? [`${path}: ${resolved}`] : []),
    ...(hasInstallScript === true ? [`${path}: install script`] : []),
  ]);
  assert.deepEqual(bad, []);
});

test("the lock file contains the optional packages of all platforms, which npm ci requires", () => {
  const { packages: locked } = JSON.parse(read("package-lock.json")) as {
    packages: Record<string, { optionalDependencies?: Record<string, string> }>;
  };
  const missing = Object.entries(locked).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter(
      (name) => !(`node_modules/${name}` in locked) && !(`${path}/node_modules/${name}` in locked),
    ),
  );
  assert.deepEqual(missing, [], "choose a version with packages for all platforms");
});

test("the matcher of compiled policies is that of its source", () => {
  assert.equal(
    readMatcherModule(),
    composeMatcherModule(),
    "run: node tools/write-policy-matcher.ts",
  );
});
