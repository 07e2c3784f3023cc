// Executables: built from a project, started where there is nothing but the libraries that they name.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { Assets } from "../../src/build/assets.ts";
import { runPlatform, startProcess, stopRun } from "../fixture/run-process.ts";

const BYTES_MAX = 160_000_000;
const root = mkdtempSync(join(tmpdir(), "build-"));
const project = join(root, "notes");
after(() => rmSync(root, { recursive: true }));

runPlatform(root, "init", "notes", "--language");
writeFileSync(join(project, "greeting.txt"), "hello from a file\n");
writeFileSync(
  join(project, "plain.ts"),
  `import { readFileSync } from "node:fs";
import { request } from "node:http";
import { database, files, route } from "@platform/service";

const texts = { "0001-tags.sql": "create table tags (name text)" };
const tags = database("tags", { migrations: texts });
const second = database("second", { migrations: new URL("./more", import.meta.url) });
const greeting: string = readFileSync(new URL("./greeting.txt", import.meta.url), "utf8");

route("GET", "/greeting", () => greeting + typeof request);
route("GET", "/counts", async () => [
  await tags.one\`select count(*) as n from tags\`,
  await second.one\`select count(*) as n from more\`,
]);
route("GET", "/site/*", files("./public"));
route("GET", "/more/*", files(new URL("./more", import.meta.url)));
route("GET", "/later/*", files("./later"));
route("GET", "/fail", () => {
  throw new Error("on purpose");
});
`,
);
mkdirSync(join(project, "more"));
writeFileSync(join(project, "more/0001-more.sql"), "create table more (name text);");
mkdirSync(join(project, "public/docs"), { recursive: true });
const page = `<h1>${"grüße ".repeat(30_000)}</h1>`;
writeFileSync(join(project, "public/index.html"), page);
writeFileSync(join(project, "public/docs/index.html"), "docs");
writeFileSync(join(project, "public/app.js"), "export {};");
writeFileSync(join(project, "public/.env"), "SECRET=1");
symlinkSync("/etc/passwd", join(project, "public/passwd"));
appendFileSync(join(project, "main.service.ts"), '\nimport "./plain.ts";\n');

/** Copies a program and its libraries to a folder. */
function copyProgram(program: string, folder: string): void {
  const libraries = execFileSync("ldd", [program], { encoding: "utf8" }).matchAll(/(\/\S+) \(0x/g);
  for (const [, path = ""] of libraries) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    copyFileSync(path, join(folder, path));
  }
  copyFileSync(program, join(folder, "service"));
}

const isRoot = process.getuid?.() === 0;

test(
  "an executable needs only the libraries that ldd lists",
  { skip: isRoot ? false : "chroot requires root" },
  async (t) => {
    const built = runPlatform(project, "build", "-o", "../out/notes");
    assert.equal(built.status, 0, built.text);
    assert.match(built.text, /^Built \.\.\/out\/notes \(\d+ MB\) in /);
    assert.deepEqual(readdirSync(join(root, "out")), ["notes"]);
    const bytes = Number(/\((\d+) MB\)/.exec(built.text)![1]) * 1_000_000;
    assert.ok(bytes <= BYTES_MAX, `${bytes} bytes`);

    const empty = join(root, "empty");
    mkdirSync(empty);
    copyProgram(join(root, "out/notes"), empty);
    const start = () => startProcess(t, "chroot", [empty, "/service"], root);
    let running = await start();
    const headers = { "Content-Type": "application/json" };
    const body = JSON.stringify({ text: "kept" });
    const made = await fetch(`${running.url}/notes`, { method: "POST", headers, body });
    assert.equal(made.status, 200, "migrations are embedded");
    assert.equal(
      await (await fetch(`${running.url}/greeting`)).text(),
      "hello from a file\nfunction",
    );
    assert.deepEqual(await (await fetch(`${running.url}/counts`)).json(), [{ n: 0 }, { n: 0 }]);
    assert.match(await (await fetch(`${running.url}/api/docs`)).text(), /<title>notes API/);
    const health = (await (await fetch(`${running.url}/healthz`)).json()) as object;
    assert.deepEqual({ ...health }, { status: "UP", service: "notes", version: "0.1.0" });
    assert.equal((await fetch(`${running.url}/fail`)).status, 500);
    await running.waitFor("plain.ts:19:9");
    await checkFiles(running.url);
    mkdirSync(join(empty, "later"));
    writeFileSync(join(empty, "later/new.txt"), "read at run time");
    assert.equal(await (await fetch(`${running.url}/later/new.txt`)).text(), "read at run time");
    await stopRun(running);

    running = await start();
    const found = (await (await fetch(`${running.url}/notes/1`)).json()) as { text: string };
    assert.equal(found.text, "kept", "data is in ./data of the working directory");
    await stopRun(running);
    assert.ok(existsSync(join(empty, "data/notes.sqlite")));

    const print = (flag: string) =>
      execFileSync(join(root, "out/notes"), [flag], { encoding: "utf8" });
    assert.equal(print("--version"), "notes 0.1.0\n");
    assert.match(
      print("--help"),
      /^notes 0\.1\.0: [^]*^ {2}PLATFORM_SERVICE_PORT +Port; .*PORT\)$/m,
    );
  },
);

test("a container's files are the service without Node, which runs where the project is not", async (t) => {
  const folder = join(root, "container");
  const build = (out: string) =>
    runPlatform(project, "build", "--target", "container", "--out", out);
  const { status, text } = build(folder);
  assert.equal(status, 0, text);
  assert.match(
    text,
    /^Built \.\.\/container \(\d MB\) in .*\n\n {2}docker build -t notes:0\.1\.0 /,
  );
  // Again: an own folder is replaced, another one is not.
  assert.equal(build(folder).status, 0);
  assert.match(build(join(project, "public")).text, /public exists and was not written by/);
  assert.deepEqual(readdirSync(folder), ["Dockerfile", "app"]);
  const dockerfile = readFileSync(join(folder, "Dockerfile"), "utf8");
  assert.match(dockerfile, /^FROM \$\{NODE_BASE\}$[^]*^USER 10001:10001$[^]*^COPY app \/app\n$/m);
  // As in the image, the script is not in the working directory, and the folder of the build is gone.
  const image = join(root, "image");
  renameSync(folder, image);
  const data = join(root, "volume");
  mkdirSync(join(data, "later"), { recursive: true });
  writeFileSync(join(data, "later/new.txt"), "read at run time");
  const script = join(image, "app/service.cjs");
  const running = await startProcess(t, process.execPath, [script], data, {
    PLATFORM_DATA_DIR: join(data, "data"),
  });
  const body = new URLSearchParams({ text: "kept" });
  assert.equal((await fetch(`${running.url}/notes`, { method: "POST", body })).status, 200);
  assert.deepEqual(await (await fetch(`${running.url}/counts`)).json(), [{ n: 0 }, { n: 0 }]);
  assert.equal((await fetch(`${running.url}/fail`)).status, 500);
  await running.waitFor("plain.ts:19:9");
  await checkFiles(running.url);
  assert.equal(await (await fetch(`${running.url}/later/new.txt`)).text(), "read at run time");
  await stopRun(running);
  assert.ok(existsSync(join(data, "data/notes.sqlite")));
});

/** The files of `files()` are in the executable; the root that it runs in has none. */
async function checkFiles(url: string): Promise<void> {
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(`${url}${path}`, { headers });
  const whole = await get("/site/");
  assert.equal(whole.status, 200);
  assert.equal(whole.headers.get("content-type"), "text/html; charset=utf-8");
  assert.equal(await whole.text(), page);
  const etag = whole.headers.get("etag")!;
  assert.equal((await get("/site/", { "If-None-Match": etag })).status, 304);
  assert.equal((await get("/site/", { "If-Match": '"other"' })).status, 412);
  const part = await get("/site/index.html", { Range: "bytes=4-11", "If-Range": etag });
  assert.equal(part.status, 206);
  const bytes = Buffer.from(page);
  assert.equal(part.headers.get("content-range"), `bytes 4-11/${bytes.length}`);
  assert.deepEqual(Buffer.from(await part.arrayBuffer()), bytes.subarray(4, 12));
  assert.equal((await get("/site/", { Range: "bytes=9999999-" })).status, 416);
  assert.equal(await (await get("/site/docs")).text(), "docs");
  const script = await get("/site/app.js");
  assert.equal(script.headers.get("content-type"), "text/javascript; charset=utf-8");
  const head = await fetch(`${url}/site/app.js`, { method: "HEAD" });
  assert.equal(head.headers.get("content-length"), "10");
  assert.equal((await get("/more/0001-more.sql")).status, 200);
  for (const path of ["/site/.env", "/site/passwd", "/site/none", "/site/..%2fplain.ts"]) {
    assert.equal((await get(path)).status, 404, path);
  }
}

test("the served files of an executable are bounded", () => {
  const folder = join(project, "public");
  const { files } = new Assets().addFolder(folder);
  const names = ["app.js", "docs/index.html", "index.html"];
  assert.deepEqual(Object.keys(files).sort(), names);
  const sizes = Object.values(files).map(({ sizeBytes }) => sizeBytes);
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  new Assets({ filesMax: 3, bytesMax: bytes }).addFolder(folder);
  for (const bounds of [
    { filesMax: 2, bytesMax: bytes },
    { filesMax: 3, bytesMax: bytes - 1 },
  ]) {
    assert.throws(
      () => new Assets(bounds).addFolder(folder),
      /public: an executable contains up to/,
    );
  }
});

test("build refuses what an executable cannot contain, and says where and why", () => {
  const file = join(root, "bad.service.ts");
  const build = (source: string): string => {
    writeFileSync(file, source);
    const { status, text } = runPlatform(root, "build", "bad.service.ts");
    assert.equal(status, 1, text);
    return text;
  };
  assert.match(
    build("export route FETCH / { }\n"),
    /^bad\.service\.ts:1:14: expected an HTTP method.*\n {2}1 \| export/,
  );
  assert.match(
    build('import "./missing.ts";\nexport route GET / { }\n'),
    /^bad\.service\.ts:1:8: there is no file \.\/missing\.ts\n {2}1 \| import/,
  );
  assert.match(
    build('server { }\nimport x from "not-there";\nexport route GET / { return x }\n'),
    /^bad\.service\.ts:2:15: the package not-there is not installed: npm install not-there\n/,
  );
  const addon = join(root, "node_modules/fast-hash");
  mkdirSync(addon, { recursive: true });
  writeFileSync(join(addon, "package.json"), '{ "name": "fast-hash", "main": "index.js" }');
  writeFileSync(join(addon, "index.js"), 'module.exports = require("./build/hash.node");');
  mkdirSync(join(addon, "build"));
  writeFileSync(join(addon, "build/hash.node"), "");
  const source = 'import hash from "fast-hash";\nexport route GET / { return hash(1) }\n';
  assert.match(
    build(source),
    /^bad\.service\.ts:1:18: the package fast-hash has a native addon \(\.\/build\/hash\.node\)/,
  );
  mkdirSync(join(root, "folder"));
  assert.match(
    runPlatform(root, "build", "bad.service.ts", "--out", "folder").text,
    /folder is a folder: name the executable/,
  );
  assert.match(
    runPlatform(root, "build", "none.service.ts").text,
    /none\.service\.ts does not exist/,
  );
});
