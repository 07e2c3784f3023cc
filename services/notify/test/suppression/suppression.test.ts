// The suppression list over the API, on both databases.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { formatCsv, parseCsv } from "../../src/suppression/csv.ts";
import { STAGE_KINDS, startStageOn, type Stage } from "../stage.ts";

const MAIL = { to: "ada@example.org", subject: "Hello", text: "Hello" };

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`suppression on ${kind}`, { skip: skip ?? false }, () => {
    let stage: Stage;
    before(async () => {
      stage = await startStageOn(await prepare());
    });
    after(() => stage.close());

    test("an address is added, blocks its mail, and is removed", async () => {
      const added = await stage.call("POST", "/api/v1/suppression", { email: "Ada@Example.org" });
      assert.equal(added.status, 201);
      assert.equal(added.body.email, "ada@example.org");
      assert.equal(added.body.reason, "manual");
      assert.match(added.body.suppressed_at, /^\d{4}-.*Z$/);
      const refused = await stage.call("POST", "/api/v1/send", MAIL);
      assert.equal(refused.status, 422);
      assert.equal(refused.body.code, "recipient_suppressed");
      const list = await stage.call("GET", "/api/v1/messages");
      assert.deepEqual(list.body.messages, []);
      const path = `/api/v1/suppression/${encodeURIComponent("ADA@example.org")}`;
      assert.equal((await stage.call("GET", path)).status, 200);
      assert.equal((await stage.call("DELETE", path)).status, 204);
      assert.equal((await stage.call("DELETE", path)).status, 404);
      assert.equal((await stage.call("POST", "/api/v1/send", MAIL)).status, 200);
    });

    test("unsubscribing blocks bulk mail only", async () => {
      const entry = { email: "bulk@example.org", reason: "unsubscribe" };
      await stage.call("POST", "/api/v1/suppression", entry);
      const mail = { ...MAIL, to: "bulk@example.org" };
      assert.equal((await stage.call("POST", "/api/v1/send", mail)).status, 200);
      const bulk = await stage.call("POST", "/api/v1/send", { ...mail, stream: "bulk" });
      assert.equal(bulk.status, 422);
    });

    test("a weaker reason does not replace a stronger one", async () => {
      const email = "strong@example.org";
      await stage.call("POST", "/api/v1/suppression", { email, reason: "complaint" });
      const weaker = await stage.call("POST", "/api/v1/suppression", {
        email,
        reason: "unsubscribe",
      });
      assert.equal(weaker.body.reason, "complaint");
    });

    test("import and export round-trip as CSV", async () => {
      const csv = 'reason,email\r\nhard_bounce,a1@example.org\r\n,"A2@Example.org"\r\n';
      const imported = await stage.call("POST", "/api/v1/suppression/import", csv);
      assert.deepEqual(imported.body, { status: "imported", count: 2 });
      const exported = await stage.call("GET", "/api/v1/suppression/export");
      assert.equal(exported.headers.get("content-type"), "text/csv; charset=utf-8");
      const rows = parseCsv(exported.text);
      assert.deepEqual(rows[0], ["email", "reason", "suppressed_at"]);
      assert.deepEqual(
        rows.filter(([email]) => /^a\d@/.test(email!)).map((row) => row.slice(0, 2)),
        [
          ["a1@example.org", "hard_bounce"],
          ["a2@example.org", "manual"],
        ],
      );
    });

    test("an import with a mistake imports nothing, and names the line", async () => {
      const cases: [csv: string, message: RegExp][] = [
        ["email\na9@example.org\nnot an address\n", /line 3/],
        ["email,reason\na9@example.org,because\n", /line 2: the reason/],
        ["address\na9@example.org\n", /must name the column email/],
        ['email\n"a9@example.org\n', /line/],
      ];
      for (const [csv, message] of cases) {
        const { status, body } = await stage.call("POST", "/api/v1/suppression/import", csv);
        assert.equal(status, 400, csv);
        assert.match(body.detail, message);
      }
      assert.equal((await stage.call("GET", "/api/v1/suppression/a9@example.org")).status, 404);
    });

    test("pages follow each other by cursor", async () => {
      const first = await stage.call("GET", "/api/v1/suppression?limit=2");
      assert.equal(first.body.addresses.length, 2);
      const { next_cursor: cursor } = first.body;
      const second = await stage.call("GET", `/api/v1/suppression?limit=200&cursor=${cursor}`);
      const all = [...first.body.addresses, ...second.body.addresses].map(
        (one: { email: string }) => one.email,
      );
      assert.deepEqual(all, all.toSorted());
      assert.equal(new Set(all).size, all.length);
    });
  });
}

test("cells that spreadsheets would run are exported as text", () => {
  assert.equal(formatCsv([["=1+1", 'a"b', "c,d"]]), '\'=1+1,"a""b","c,d"\r\n');
});
