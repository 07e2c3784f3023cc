// The activity page: own events, not those of others, in pages.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AuditLog } from "../../src/audit/audit-log.ts";
import { ADMIN, expectStatus, join, signIn, startWithAdmin } from "../client.ts";
import { STAGE_KINDS } from "../stage.ts";
import { PageBrowser, readText, type Page } from "./page-browser.ts";

const PATH = "/account/activity";

for (const { kind, skip, prepare } of STAGE_KINDS) {
  test(`activity, ${kind}`, { skip }, async (t) => {
    const stage = await startWithAdmin(await prepare());

    const enter = async (person: { username: string; password: string }): Promise<PageBrowser> => {
      const browser = new PageBrowser(stage);
      const { username, password } = person;
      await browser.submit(await browser.open("/sign-in"), { username, password }, "/sign-in");
      return browser;
    };

    await t.test("shows sign-ins, failures and changes of the own account only", async () => {
      const ada = await join(stage, "ada-active");
      const eve = await join(stage, "eve-active");
      const stranger = new PageBrowser(stage);
      const form = await stranger.open("/sign-in");
      await stranger.submit(form, { username: ada.username, password: "not this" }, "/sign-in");
      const root = await signIn(stage, ADMIN);
      await expectStatus(200, stage, "PATCH", `/api/v1/users/${ada.id}`, {
        token: root.token,
        body: { name: "Ada" },
      });
      const browser = await enter(ada);
      const page = await browser.open(PATH);
      const text = readText(page);
      assert.match(text, /Failed sign-in .{0,60}· password · Node\.js · 127\.0\.0\.0\/24/);
      assert.match(text, /Signed in .{0,60}· password · Node\.js · 127\.0\.0\.0\/24/);
      assert.match(text, /Account changed [^·]*· by an administrator (?!·)/);
      assert.match(text, /Account created/);
      assert.match(page.text, /<time datetime="\d{4}-[^"]+Z">[^<]+ UTC<\/time>/);
      assert.doesNotMatch(text, /127\.0\.0\.1/, "whole addresses are for administrators");
      const other = readText(await (await enter(eve)).open(PATH));
      assert.doesNotMatch(other, /Failed sign-in|Account changed/);
    });

    await t.test("ends all other sessions on request", async () => {
      const person = await join(stage, "ending");
      const browser = await enter(person);
      const elsewhere = await enter(person);
      const action = "/account/sessions/end-others";
      const ended = await browser.submit(await browser.open(PATH), {}, action);
      assert.match(readText(ended), /All other devices have been signed out/);
      assert.equal((await elsewhere.open("/account")).url.pathname, "/sign-in");
      assert.match(readText(await browser.open(PATH)), /Device signed out/);
    });

    await t.test("is shown in pages, and ignores malformed ones", async () => {
      const person = await join(stage, "busy");
      const browser = await enter(person);
      const log = new AuditLog(stage.database, stage.clock, Buffer.from("another chain"));
      const target = `user:${person.id}`;
      for (let index = 0; index < 60; index += 1) {
        const action = `<img src=x onerror="alert(${index})">`;
        await log.record({ action, actor: index % 2 === 0 ? target : "anonymous", target });
      }
      const seen = new Set<string>();
      let page: Page = await browser.open(PATH);
      for (let count = 1; ; count += 1) {
        const found = [...page.text.matchAll(/&lt;img src=x onerror=&quot;alert\((\d+)\)/g)];
        assert.ok(found.length <= 25);
        for (const [, index] of found) {
          assert.ok(!seen.has(index!), `event ${index} twice`);
          seen.add(index!);
        }
        assert.ok(!page.text.includes("<img"));
        const older = /href="(\/account\/activity\?before=\d+)"/.exec(page.text)?.[1];
        if (older === undefined) break;
        assert.ok(count < 5);
        page = await browser.open(older);
      }
      assert.equal(seen.size, 60);
      for (const value of ["x", "-1", "1e9", "9".repeat(40), "'; drop table"]) {
        const answer = await browser.open(`${PATH}?before=${encodeURIComponent(value)}`);
        assert.equal(answer.status, 200, value);
      }
    });
    await stage.close();
  });
}
