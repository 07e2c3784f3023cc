// Certificates on the disk: replaced whole and by halves, swapped, removed, and unusable ones.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test, type TestContext } from "node:test";
import type { DrainHook } from "@platform/kernel/lifecycle";
import { createLogger } from "@platform/kernel/log";
import {
  type CertificatePair,
  CertificateWatch,
  pickCertificateFiles,
  readCertificatePair,
} from "@platform/kernel/tls";
import { makeCertificate, opensslSkip as skip } from "@platform/testing/certificates";

/** Has the pairs `one` and `two`, and `locked.key` with a passphrase. */
let made: string;

before(() => {
  made = mkdtempSync(join(tmpdir(), "tls-made-"));
  if (skip !== false) return;
  for (const name of ["one", "two"]) makeCertificate(made, name);
  const locked = ["-aes256", "-passout", "pass:secret", "-out", join(made, "locked.key")];
  execFileSync("openssl", ["pkey", "-in", join(made, "one.key"), ...locked]);
});

after(() => rmSync(made, { recursive: true, force: true }));

/** A folder with the pair `one`, as `used.crt` and `used.key`, and the log of a watch. */
function arrange(context: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), "tls-watch-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const files = { cert: join(folder, "used.crt"), key: join(folder, "used.key") };
  const put = (name: string, used = "used"): void => {
    for (const end of ["crt", "key"])
      copyFileSync(join(made, `${name}.${end}`), join(folder, `${used}.${end}`));
  };
  put("one");
  const events: { level: string; msg: string; reason?: string; path?: string }[] = [];
  const write = (line: string): void => void events.push(JSON.parse(line));
  const log = createLogger({ service: "test", level: "info", format: "json", write });
  return { folder, files, put, events, log };
}

function nameOf(pair: CertificatePair | undefined): string | undefined {
  return pair && new X509Certificate(pair.cert).subject.replace("CN=", "");
}

test("a replaced pair is delivered, and reported once", { skip }, async (context) => {
  const { files, put, events, log } = arrange(context);
  const watch = new CertificateWatch({ pairs: [files], log });
  const first = watch.current;
  await watch.check(false);
  assert.equal(watch.current, first);
  put("two");
  await watch.check(false);
  assert.equal(nameOf(watch.current.pairs[0]), "two");
  for (let round = 0; round < 4; round++) await watch.check(false);
  assert.deepEqual(
    events.map(({ msg, path }) => [msg, path]),
    [["certificate loaded", files.cert]],
  );
});

test(
  "while only one file is new, the previous pair stays, without a word",
  { skip },
  async (context) => {
    const { folder, files, put, events, log } = arrange(context);
    const watch = new CertificateWatch({ pairs: [files], log });
    await watch.check(false);
    copyFileSync(join(made, "two.key"), join(folder, "used.key"));
    await watch.check(false);
    assert.equal(nameOf(watch.current.pairs[0]), "one");
    assert.deepEqual(events, []);
    put("two");
    await watch.check(false);
    assert.equal(nameOf(watch.current.pairs[0]), "two");
    assert.equal(watch.fault, undefined);
  },
);

test("a pair that stays invalid is reported once, with its fault", { skip }, async (context) => {
  const { folder, files, put, events, log } = arrange(context);
  const watch = new CertificateWatch({ pairs: [files], log });
  const faults: [spoil: () => void, reason: RegExp][] = [
    [
      () => copyFileSync(join(made, "two.key"), files.key),
      /the key in .*used\.key does not belong to the certificate in .*used\.crt/,
    ],
    [() => writeFileSync(files.cert, "half of it"), /used\.crt has no valid certificate in PEM/],
    [() => writeFileSync(files.cert, ""), /used\.crt has no valid certificate in PEM/],
    [
      () => copyFileSync(join(made, "locked.key"), files.key),
      /used\.key has no valid unencrypted private key/,
    ],
    [() => rmSync(files.key), /used\.key cannot be read: no such file/],
    [
      () => {
        rmSync(files.cert);
        mkdirSync(files.cert);
      },
      /used\.crt cannot be read/,
    ],
  ];
  for (const [spoil, reason] of faults) {
    rmSync(files.cert, { recursive: true, force: true });
    put("one");
    await watch.check(true);
    assert.equal(watch.fault, undefined);
    events.length = 0;
    spoil();
    for (let round = 0; round < 5; round++) await watch.check(false);
    assert.equal(nameOf(watch.current.pairs[0]), "one", String(reason));
    assert.match(watch.fault ?? "", reason);
    assert.equal(events.length, 1, String(reason));
    assert.equal(events[0]!.level, "error");
    assert.match(events[0]!.reason ?? "", reason);
  }
  assert.ok(folder);
});

test(
  "replacing by rename, by a link, and with the old times is noticed",
  { skip },
  async (context) => {
    const { folder, files, put, log } = arrange(context);
    const versions = ["one", "two"].map((name) => {
      const version = join(folder, `..${name}`);
      mkdirSync(version);
      for (const end of ["crt", "key"])
        copyFileSync(join(made, `${name}.${end}`), join(version, `tls.${end}`));
      return version;
    });
    // As Kubernetes mounts secrets: the files are links into a folder, whose own link is swapped.
    symlinkSync(versions[0]!, join(folder, "..data"));
    const mounted = { cert: join(folder, "..data/tls.crt"), key: join(folder, "..data/tls.key") };
    const watch = new CertificateWatch({ pairs: [files, mounted], log });
    await watch.check(false);
    symlinkSync(versions[1]!, join(folder, "..next"));
    renameSync(join(folder, "..next"), join(folder, "..data"));
    put("two", "next");
    renameSync(join(folder, "next.crt"), files.cert);
    renameSync(join(folder, "next.key"), files.key);
    await watch.check(false);
    assert.deepEqual(watch.current.pairs.map(nameOf), ["two", "two"]);
    put("one");
    for (const path of [files.cert, files.key]) utimesSync(path, 1, 1);
    await watch.check(false);
    put("two");
    for (const path of [files.cert, files.key]) utimesSync(path, 1, 1);
    await watch.check(false);
    assert.deepEqual(watch.current.pairs.map(nameOf), ["two", "two"]);
  },
);

test(
  "a folder: pairs are added, replaced and removed; invalid ones are left out",
  { skip },
  async (context) => {
    const { folder, files, put, events, log } = arrange(context);
    const custom = join(folder, "custom");
    mkdirSync(custom);
    put("one", "custom/shop.example");
    put("one", "custom/notes");
    copyFileSync(join(made, "one.crt"), join(custom, "bad.example.crt"));
    copyFileSync(join(made, "two.key"), join(custom, "bad.example.key"));
    const isName = (name: string): boolean => name.includes(".");
    const watch = new CertificateWatch({ pairs: [files], folder: custom, isName, log });
    const list = () => [...watch.current.named].map(([name, pair]) => `${name} ${nameOf(pair)}`);
    assert.deepEqual(list(), ["shop.example one"]);
    assert.deepEqual(
      events.map(({ msg, path }) => [msg, path]),
      [["the certificate is invalid and not used", join(custom, "bad.example.crt")]],
    );
    const shop = watch.current.named.get("shop.example");
    put("two", "custom/bad.example");
    put("two", "custom/_.new.example");
    await watch.check(false);
    assert.deepEqual(list().sort(), ["_.new.example two", "bad.example two", "shop.example one"]);
    assert.equal(
      watch.current.named.get("shop.example"),
      shop,
      "unchanged pairs are the same object",
    );
    put("one", "custom/bad.example");
    for (const end of ["crt", "key"]) rmSync(join(custom, `_.new.example.${end}`));
    rmSync(join(custom, "shop.example.key"));
    await watch.check(false);
    assert.deepEqual(list().sort(), ["bad.example one", "shop.example one"], "half a pair stays");
    renameSync(custom, join(folder, "away"));
    await watch.check(false);
    assert.deepEqual(
      list().sort(),
      ["bad.example one", "shop.example one"],
      "so does a lost folder",
    );
  },
);

test("an awaited pair in one file is delivered when it is there", { skip }, async (context) => {
  const { folder, events, log } = arrange(context);
  const path = join(folder, "later.pem");
  const files = { cert: path, key: path };
  const watch = new CertificateWatch({ pairs: [files], isAwaited: true, log });
  assert.deepEqual([watch.current.pairs, watch.paths], [[], []]);
  for (let round = 0; round < 3; round++) await watch.check(false);
  assert.deepEqual(
    events.map(({ level, msg }) => [level, msg]),
    [["info", "the certificate is awaited"]],
  );
  const whole = ["crt", "key"].map((end) => readFileSync(join(made, `two.${end}`), "utf8"));
  writeFileSync(path, whole.join(""));
  await watch.check(false);
  assert.equal(nameOf(watch.current.pairs[0]), "two");
  assert.deepEqual(watch.paths, [path]);
  rmSync(path);
  await watch.check(true);
  assert.equal(nameOf(watch.current.pairs[0]), "two", "a lost file leaves the pair");
  assert.match(watch.fault ?? "", /no such file/);
  writeFileSync(path, "damaged");
  assert.throws(() => new CertificateWatch({ pairs: [files], isAwaited: true, log }), /no valid/);
});

test("a folder: a pair may be one file, beside pairs of two", { skip }, async (context) => {
  const { folder, put, log } = arrange(context);
  const custom = join(folder, "custom");
  mkdirSync(custom);
  const write = (pair: string, name: string): void => {
    const whole = ["crt", "key"].map((end) => readFileSync(join(made, `${pair}.${end}`), "utf8"));
    writeFileSync(join(custom, `${name}.pem`), whole.join(""));
  };
  write("one", "shop.example");
  const watch = new CertificateWatch({ folder: custom, log });
  const list = () => [...watch.current.named].map(([name, pair]) => `${name} ${nameOf(pair)}`);
  assert.deepEqual(list(), ["shop.example one"]);
  write("two", "shop.example");
  put("one", "custom/other.example");
  await watch.check(false);
  assert.deepEqual(list().sort(), ["other.example one", "shop.example two"]);
  put("one", "custom/shop.example");
  await watch.check(false);
  assert.deepEqual(list().sort(), ["other.example one", "shop.example one"]);
});

test("at the start, an invalid pair or one of two settings is an error", { skip }, (context) => {
  const { folder, files, log } = arrange(context);
  const mixed = { cert: files.cert, key: join(made, "two.key") };
  assert.throws(() => new CertificateWatch({ pairs: [mixed], log }), /does not belong/);
  assert.throws(() => new CertificateWatch({ folder: join(folder, "none"), log }), /ENOENT/);
  assert.throws(
    () => readCertificatePair({ cert: join(folder, "none"), key: files.key }),
    /no such file/,
  );
  assert.throws(() => pickCertificateFiles({ tls_cert: "a" }), /tls_key is not set/);
  assert.throws(() => pickCertificateFiles({ tls_key: "a" }), /tls_cert is not set/);
  assert.equal(pickCertificateFiles({}), undefined);
  const both = join(folder, "both.pem");
  writeFileSync(
    both,
    Buffer.concat([readCertificatePair(files).cert, readCertificatePair(files).key]),
  );
  assert.equal(nameOf(readCertificatePair({ cert: both, key: both })), "one");
});

test("an expired certificate is used, with a warning", { skip }, async (context) => {
  const { files, put, events, log } = arrange(context);
  const watch = new CertificateWatch({ pairs: [files], log });
  put("two");
  context.mock.timers.enable({ apis: ["Date"], now: Date.parse("2100-01-01T00:00:00Z") });
  await watch.check(true);
  assert.equal(nameOf(watch.current.pairs[0]), "two");
  assert.deepEqual(
    events.map(({ level, msg }) => [level, msg]),
    [["warn", "certificate loaded, but it is not valid now"]],
  );
});

test(
  "changes reach the listener by themselves, at SIGHUP, and again if it refuses",
  { skip },
  async (context) => {
    const { files, put, log } = arrange(context);
    const watch = new CertificateWatch({ pairs: [files], log });
    let reload = (): void | Promise<void> => undefined;
    let drain: DrainHook = () => undefined;
    const used: (string | undefined)[] = [];
    let seen = Promise.withResolvers<void>();
    let refusals = 1;
    watch.follow(
      {
        onReload: (_name, hook) => void (reload = hook),
        onDrain: (_name, hook) => void (drain = hook),
      },
      ({ pairs }) => {
        used.push(nameOf(pairs[0]));
        if (refusals-- > 0) throw new Error("not now");
        seen.resolve();
      },
    );
    context.after(() => drain({ deadline: new AbortController().signal, remainingMs: () => 0 }));
    put("two");
    const startedMs = performance.now();
    // The timers of a watch keep no process alive.
    const alive = setInterval(() => undefined, 1_000);
    context.after(() => clearInterval(alive));
    await seen.promise;
    assert.deepEqual(used, ["two", "two"]);
    assert.ok(performance.now() - startedMs < 10_000);
    seen = Promise.withResolvers<void>();
    put("one");
    await reload();
    assert.deepEqual(used, ["two", "two", "one"]);
  },
);
