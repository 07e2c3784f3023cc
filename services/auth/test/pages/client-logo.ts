// Logos of clients: uploaded by administrators, verified, served from the service's own origin; `logo_uri` is never loaded.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { chromiumSkip } from "@platform/kernel/testing";
import { ADMIN, expectStatus, join, signIn, startWithAdmin } from "../client.ts";
import { STAGE_KINDS } from "../stage.ts";
import { Person, shareBrowser } from "./chromium.ts";
import { startApplication } from "./relying-party.ts";

// 1 × 1 pixels.
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
  "base64",
);
const JPEG_START = Buffer.from("ffd8ffe000104a46494600010100000100010000ffc0000b08", "hex");

for (const { kind, skip, prepare } of STAGE_KINDS) {
  test(
    `logos are checked, replaced, removed and deleted with the client, ${kind}`,
    { skip },
    async () => {
      const stage = await startWithAdmin(await prepare());
      const { token } = await signIn(stage, ADMIN);
      const application = await startApplication(stage, "Notes");
      const path = `/api/v1/auth/clients/${application.clientId}/logo`;
      const put = (status: number, image: Buffer | string, by = token) =>
        expectStatus(status, stage, "PUT", path, {
          token: by,
          body: { image: typeof image === "string" ? image : image.toString("base64") },
        });
      const stranger = await join(stage, "stranger");
      await put(403, PNG, stranger.token);
      await expectStatus(404, stage, "DELETE", path, { token });
      await expectStatus(404, stage, "GET", path, { token });
      await expectStatus(403, stage, "GET", path, { token: stranger.token });
      const huge = Buffer.from(PNG);
      huge.writeUInt32BE(60_000, 16);
      const wideJpeg = Buffer.concat([
        JPEG_START,
        Buffer.from("0010ffff", "hex"),
        Buffer.alloc(20),
      ]);
      for (const image of [
        "",
        "not base64!",
        "<svg xmlns='http://www.w3.org/2000/svg'/>",
        Buffer.from("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"),
        Buffer.from("GIF89a\u0001\u0000\u0001\u0000"),
        Buffer.from("<!doctype html><script>alert(1)</script>"),
        PNG.subarray(0, 20),
        JPEG_START.subarray(0, 12),
        huge,
        wideJpeg,
        Buffer.concat([PNG, Buffer.alloc(65_536)]),
      ]) {
        await put(400, image);
      }
      await put(413, "A".repeat(100_000));
      await put(204, PNG);
      const smallJpeg = Buffer.concat([
        JPEG_START,
        Buffer.from("00100010", "hex"),
        Buffer.alloc(20),
      ]);
      await put(204, smallJpeg);
      await put(204, PNG);
      const { body: read } = await expectStatus(200, stage, "GET", path, { token });
      assert.deepEqual(read, { type: "image/png", image: PNG.toString("base64") });
      await expectStatus(404, stage, "PUT", "/api/v1/auth/clients/none/logo", {
        token,
        body: { image: PNG.toString("base64") },
      });
      await expectStatus(204, stage, "DELETE", path, { token });
      await expectStatus(404, stage, "DELETE", path, { token });
      await put(204, PNG);
      await expectStatus(204, stage, "DELETE", `/api/v1/auth/clients/${application.clientId}`, {
        token,
      });
      const left = await stage.database.db
        .selectFrom("auth_oauth_client_logos")
        .selectAll()
        .execute();
      assert.deepEqual(left, []);
      for (const name of ["x", "a".repeat(64), "..%2f..%2fetc%2fpasswd"]) {
        assert.equal((await fetch(`${stage.url}/client-logo/${name}`)).status, 404, name);
      }
      application.close();
      await stage.close();
    },
  );
}

test(
  "the consent page shows the uploaded logo and never loads logo_uri",
  { skip: chromiumSkip },
  async (t) => {
    const stage = await startWithAdmin(await STAGE_KINDS[0]!.prepare());
    let asked = 0;
    const foreign = createServer((_request, response) => {
      asked += 1;
      response.end(PNG);
    });
    await new Promise<void>((resolve) => foreign.listen(0, "127.0.0.1", resolve));
    t.after(() => foreign.close());
    const { port } = foreign.address() as AddressInfo;
    const application = await startApplication(stage, `Notes <b>"&</b>`, {
      logo_uri: `http://127.0.0.1:${port}/logo.png`,
    });
    const { token } = await signIn(stage, ADMIN);
    await expectStatus(204, stage, "PUT", `/api/v1/auth/clients/${application.clientId}/logo`, {
      token,
      body: { image: PNG.toString("base64") },
    });
    const ada = await join(stage, "ada");
    const browser = await shareBrowser();
    const person = await Person.begin(browser);
    await person.open(await application.begin());
    await person.enter({ Username: ada.username, Password: ada.password });
    await person.page.getByRole("button", { name: "Sign in", exact: true }).click();
    await person.expect(`Allow Notes <b>"&</b>?`);
    const logo = person.page.locator("img.client");
    const source = (await logo.getAttribute("src")) ?? "";
    assert.match(source, /^\/client-logo\/[0-9a-f]{64}$/);
    await person.page.waitForFunction("document.querySelector('img.client').naturalWidth === 1");
    const { headers } = await fetch(new URL(source, stage.url));
    assert.equal(headers.get("content-type"), "image/png");
    assert.equal(headers.get("x-content-type-options"), "nosniff");
    assert.match(headers.get("content-security-policy") ?? "", /^default-src 'none'.*sandbox$/);
    await person.page.getByRole("button", { name: "Allow", exact: true }).click();
    await person.page.getByRole("heading", { name: "Back at" }).waitFor();
    await person.open(`${stage.publicUrl}/account/applications`);
    await person.expect("Applications with access to your account");
    await person.page.locator("img.client").waitFor();
    assert.equal(asked, 0, "logo_uri was loaded");
    await person.end();
    application.close();
    await stage.close();
  },
);
