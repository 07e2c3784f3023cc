// Deployment: the image's file system is started, the manifests are checked by the types of Kubernetes.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, test } from "node:test";
import { parseAllDocuments } from "yaml";
import { createManifests, formatManifests } from "../../src/deploy/manifests.ts";
import { runPlatform, startProcess, stopRun } from "../fixture/run-process.ts";

const USER = 10_001;
const MODULES = resolve(import.meta.dirname, "../../../../node_modules");
const root = mkdtempSync(join(tmpdir(), "deploy-"));
const project = join(root, "notes");
after(() => rmSync(root, { recursive: true }));
runPlatform(root, "init", "notes", "--language");

const isRoot = process.getuid?.() === 0;

test(
  "the image contains all that the service needs, without root and without writing outside /data",
  { skip: isRoot ? false : "chroot requires root" },
  async (t) => {
    const written = runPlatform(project, "deploy", "--target", "docker");
    assert.equal(written.status, 0, written.text);
    assert.match(written.text, /docker build -t notes:0\.1\.0 \.\n {2}docker run -p 3000:3000/);
    const dockerfile = readFileSync(join(project, "Dockerfile"), "utf8");
    assert.match(dockerfile, /\nFROM scratch\n[\s\S]*\nUSER 10001:10001\n/);
    const image = join(project, "dist/image");
    assert.equal(statSync(join(image, "tmp")).mode & 0o7777, 0o1777);
    execFileSync("chown", [`${USER}:${USER}`, join(image, "data")]);
    const args = [`--userspec=${USER}:${USER}`, image, "/service"];
    const running = await startProcess(t, "chroot", args, root, { PLATFORM_DATA_DIR: "/data" });
    const body = new URLSearchParams({ text: "stored" });
    const made = await fetch(`${running.url}/notes`, { method: "POST", body });
    assert.equal(made.status, 200, await made.text());
    await stopRun(running);
    assert.equal(statSync(join(image, "data/notes.sqlite")).uid, USER);
    assert.ok(!existsSync(join(image, "notes.sqlite")));
  },
);

test("k8s writes manifests for the namespace; files of the author are not replaced", () => {
  const dry = runPlatform(project, "deploy", "--target", "k8s", "--namespace", "team", "--dry-run");
  assert.equal(dry.status, 0, dry.text);
  assert.ok(!existsSync(join(project, "deploy")), "a dry run writes nothing");
  const manifests = parseAllDocuments(dry.text).map((one) => one.toJS() as Manifest);
  assert.deepEqual(
    manifests.map(({ kind, metadata }) => `${kind} ${metadata.namespace}/${metadata.name}`),
    ["PersistentVolumeClaim team/notes-data", "Service team/notes", "Deployment team/notes"],
  );
  writeFileSync(join(project, "Dockerfile"), "FROM node\n");
  const refused = runPlatform(project, "deploy", "--target", "docker");
  assert.equal(refused.status, 1);
  assert.match(refused.text, /Dockerfile exists and was not written by platform deploy: move it/);
  assert.equal(readFileSync(join(project, "Dockerfile"), "utf8"), "FROM node\n");
  for (const [flags, message] of [
    [["--target", "docker", "--namespace", "x"], /--namespace requires --target k8s/],
    [["--target", "swarm", "--namespace", "No"], /target[\s\S]*namespace/],
    [["--target", "k8s", "--dry-run", "--apply"], /exclude each other/],
  ] as const) {
    const { status, text } = runPlatform(project, "deploy", ...flags);
    assert.notEqual(status, 0, flags.join(" "));
    assert.match(text, message);
  }
});

test("--apply names the missing program before anything is built", () => {
  const main = resolve(import.meta.dirname, "../../../../bin/platform.js");
  const args = [main, "deploy", "--target", "k8s", "--apply"];
  const env = { PATH: "/nowhere" };
  const run = spawnSync(process.execPath, args, { cwd: project, env, encoding: "utf8" });
  assert.equal(run.status, 1);
  assert.match(run.stderr, /--apply requires one of docker, podman, buildah/);
});

test("an image without a registry is not pushed, and the missing name is said", () => {
  const programs = join(root, "programs");
  mkdirSync(programs);
  const log = join(programs, "log");
  for (const name of ["docker", "kubectl"]) {
    const text = `#!/bin/sh\necho "${name} $1" >>"${log}"\n`;
    writeFileSync(join(programs, name), text, { mode: 0o755 });
  }
  rmSync(join(project, "Dockerfile"), { force: true });
  const main = resolve(import.meta.dirname, "../../../../bin/platform.js");
  const { NODE_TEST_CONTEXT: _, ...others } = process.env;
  const env = { ...others, PATH: `${programs}:${process.env["PATH"]}` };
  const args = [main, "deploy", "--target", "k8s", "--apply"];
  const { stdout } = spawnSync(process.execPath, args, { cwd: project, env, encoding: "utf8" });
  assert.match(stdout, /notes:0\.1\.0 has no registry.*--image REGISTRY\/notes:0\.1\.0/);
  assert.deepEqual(readFileSync(log, "utf8").split("\n"), [
    "docker build",
    "kubectl apply",
    "kubectl rollout",
    "",
  ]);
});

interface Manifest {
  kind: string;
  metadata: { name: string; namespace?: string };
}

/** Types by kind, as in the packages of Kubernetes. */
const TYPES: Readonly<Record<string, string>> = {
  Deployment: "apps/v1",
  Service: "core/v1",
  PersistentVolumeClaim: "core/v1",
  PodDisruptionBudget: "policy/v1",
};

test("manifests have the types of Kubernetes; wrong ones are found", () => {
  const base = { name: "notes", version: "0.1.0", image: "notes:0.1.0", namespace: undefined };
  const good = (["none", "sqlite", "postgres"] as const).flatMap((storage) =>
    parseAllDocuments(formatManifests(createManifests({ ...base, storage }))).map((one) =>
      JSON.stringify(one.toJS()),
    ),
  );
  const deployment = good.find((one) => one.includes('"Deployment"'))!;
  const service = good.find((one) => one.includes('"kind":"Service"'))!;
  const bad: [text: string, message: RegExp][] = [
    [
      deployment.replace('"replicas":2', '"replicas":"2"'),
      /'string' is not assignable to type 'number'/,
    ],
    [deployment.replace('"readinessProbe"', '"readyProbe"'), /readyProbe/],
    [deployment.replace('"kind":"Deployment"', '"kind":"Deploy"'), /"Deploy"/],
    [deployment.replace('"runAsNonRoot":true', '"runAsNonRoot":"yes"'), /boolean/],
    [service.replace('"targetPort":"http"', '"targetPort":true'), /'true'/],
  ];
  const lines = [...good, ...bad.map(([text]) => text)].map((text, index) => {
    const kind = text.includes('"targetPort"') ? "Service" : readKind(text);
    return `export const m${index}: import("kubernetes-types/${TYPES[kind]}.js").${kind} = ${text};`;
  });
  writeFileSync(join(root, "manifests.ts"), lines.join("\n"));
  const compilerOptions = {
    strict: true,
    noEmit: true,
    module: "nodenext",
    types: [],
    paths: { "kubernetes-types/*.js": [join(MODULES, "kubernetes-types/*.d.ts")] },
  };
  const config = { compilerOptions, files: ["manifests.ts"] };
  writeFileSync(join(root, "tsconfig.json"), JSON.stringify(config));
  const compiler = join(MODULES, "typescript/bin/tsc");
  const { stdout } = spawnSync(process.execPath, [compiler, "-p", root, "--pretty", "false"], {
    encoding: "utf8",
    cwd: root,
  });
  const errors = Map.groupBy(
    stdout.split("\n").filter((line) => line.includes("error TS")),
    (line) => Number(/\((\d+),/.exec(line)?.[1]) - 1 - good.length,
  );
  assert.deepEqual(
    Array.from(errors.keys()).sort((a, b) => a - b),
    bad.map((_, index) => index),
    stdout,
  );
  for (const [index, [, message]] of bad.entries()) {
    assert.match(errors.get(index)!.join("\n"), message);
  }
});

function readKind(text: string): string {
  const { kind } = JSON.parse(text) as Manifest;
  return kind in TYPES ? kind : "Deployment";
}
