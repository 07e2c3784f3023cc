// Deceptive names of users, clients and passkeys.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isDeceptive, isDeceptiveIdentifier } from "../../src/user/deceptive-name.ts";
import { ADMIN, call, expectStatus, join, signIn, startWithAdmin } from "../client.ts";
import { STAGE_KINDS, type Stage } from "../stage.ts";

let stage: Stage;
before(async () => {
  stage = await startWithAdmin(await STAGE_KINDS[0]!.prepare());
});
after(() => stage.close());

// A Cyrillic a and p, a right-to-left override, a zero-width space, an isolate.
const DECEPTIVE = [
  "\u0440\u0430ypal",
  "gnp.\u202Eeciovni",
  "pay\u200Bpal",
  "a\u2066b\u2069",
  "\u03BFpen",
];
const HONEST = [
  "Zoë",
  "Иван",
  "Ἀθηνᾶ",
  "山田 Taro",
  "김 Kim",
  "Иван Smith",
  "O’Brien",
  "محمد",
  "שרה",
  "José-María",
];

test("a name is found as it was stored, however it was typed", async () => {
  const { token } = await signIn(stage, ADMIN);
  const password = "a long password of theirs";
  // A blank that a keyboard adds, full-width letters, a decomposed accent, a sharp s.
  const stored = "zo\u00eb.stra\u00dfe";
  const typed = [
    ` ${stored} `,
    `${stored}\u00a0`,
    "zoe\u0308.stra\u00dfe",
    "ZO\u00cb.STRASSE",
    "\uff5a\uff4f\u00eb.stra\u00dfe",
  ];
  const email = "zo\u00eb@example.com";
  await expectStatus(201, stage, "POST", "/api/v1/auth/register", {
    body: {
      username: `${typed[2]} `,
      password,
      email: ` ${email.normalize("NFD").toUpperCase()} `,
    },
  });
  for (const username of typed) {
    await expectStatus(200, stage, "POST", "/api/v1/auth/login", { body: { username, password } });
    await expectStatus(409, stage, "POST", "/api/v1/auth/register", {
      body: { username, password },
    });
    const search = encodeURIComponent(username);
    const { body } = await expectStatus(200, stage, "GET", `/api/v1/users?search=${search}`, {
      token,
    });
    assert.deepEqual(
      (body as never as { users: { username: string }[] }).users.map((user) => user.username),
      [stored],
      username,
    );
  }
  const search = encodeURIComponent(` ${email.normalize("NFD")}`);
  const { body } = await expectStatus(200, stage, "GET", `/api/v1/users?search=${search}`, {
    token,
  });
  assert.equal((body as never as { users: unknown[] }).users.length, 1);
});

test("wrong passwords for a name count together, however it was typed", async () => {
  await expectStatus(201, stage, "POST", "/api/v1/auth/register", {
    body: { username: "throttled", password: "a long password of theirs" },
  });
  const forms = ["throttled", "throttled ", " THROTTLED", "\uff54hrottled"];
  const statuses: number[] = [];
  for (let index = 0; index < 12; index += 1) {
    const username = forms[index % forms.length];
    const answer = await call(stage, "POST", "/api/v1/auth/login", {
      body: { username, password: "not the password" },
    });
    statuses.push(answer.status);
  }
  assert.equal(statuses.at(-1), 429, statuses.join(" "));
});

test("look-alike mixtures and control characters are deceptive, one script per word is not", () => {
  for (const name of DECEPTIVE) assert.ok(isDeceptive(name), name);
  for (const name of HONEST) assert.ok(!isDeceptive(name), name);
  assert.ok(isDeceptiveIdentifier("\u0438\u0432\u0430\u043D.admin"));
  assert.ok(!isDeceptiveIdentifier("ivan.admin"));
});

test("deceptive names are rejected for users, clients and passkeys", async () => {
  const password = "a long password of theirs";
  const person = await join(stage, "person");
  const { token } = await signIn(stage, ADMIN);
  for (const [index, name] of DECEPTIVE.entries()) {
    const register = "/api/v1/auth/register";
    await expectStatus(400, stage, "POST", register, { body: { username: name, password } });
    await expectStatus(400, stage, "POST", register, {
      body: { username: `person-${index}`, password, name },
    });
    await expectStatus(400, stage, "PATCH", "/api/v1/auth/account", {
      token: person.token,
      body: { name },
    });
    await expectStatus(400, stage, "PATCH", `/api/v1/users/${person.id}`, {
      token,
      body: { name },
    });
    await expectStatus(400, stage, "POST", "/api/v1/auth/clients", {
      token,
      body: { client_name: name, redirect_uris: ["https://app.example/back"] },
    });
    await expectStatus(400, stage, "PATCH", "/api/v1/auth/passkeys/some-passkey", {
      token: person.token,
      body: { name },
    });
  }
  for (const name of HONEST) {
    await expectStatus(200, stage, "PATCH", "/api/v1/auth/account", {
      token: person.token,
      body: { name },
    });
  }
});

test("users are searched by parts of their names and addresses, page by page", async () => {
  const { token } = await signIn(stage, ADMIN);
  for (const name of ["search-anna", "search-bert", "other_100%"]) {
    await call(stage, "POST", "/api/v1/users", {
      token,
      body: {
        username: name.replace("%", ""),
        email: `${name.slice(-4, -1)}x@mail.example`,
        name: `${name} Dotted`,
      },
    });
  }
  const find = async (search: string, more = ""): Promise<string[]> => {
    const path = `/api/v1/users?search=${encodeURIComponent(search)}${more}`;
    const { body } = await expectStatus(200, stage, "GET", path, { token });
    return (body as unknown as { users: { username: string }[] }).users.map(
      ({ username }) => username,
    );
  };
  assert.deepEqual(await find("SEARCH"), ["search-anna", "search-bert"]);
  assert.deepEqual(await find("search", "&limit=1"), ["search-anna"]);
  assert.deepEqual(await find("berx@"), ["search-bert"]);
  assert.deepEqual(await find("anna dotted"), ["search-anna"]);
  assert.deepEqual(await find("100%"), ["other_100"], "signs of patterns stand for themselves");
  assert.deepEqual(await find("h_a"), []);
  await expectStatus(400, stage, "GET", "/api/v1/users?search=", { token });
});
