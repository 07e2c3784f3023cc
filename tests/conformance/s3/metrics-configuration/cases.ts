// Configurations of request metrics: https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketMetricsConfiguration.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, readResult } from "../case.ts";

const toBody = (id: string, filter = "") =>
  `<MetricsConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Id>${id}</Id>${filter}</MetricsConfiguration>`;
const TAG = "<Tag><Key>team</Key><Value>red</Value></Tag>";

export const cases = casesOf(
  "Metrics configurations",
  [
    "are put, read, listed, replaced and deleted by their ids",
    async ({ ask }) => {
      const whole = toBody("whole");
      assertEmpty(await ask("PUT", "?metrics&id=whole", { body: whole }), 200);
      const filter = `<Filter><And><Prefix>docs/</Prefix>${TAG}</And></Filter>`;
      assertEmpty(await ask("PUT", "?metrics&id=docs", { body: toBody("docs", filter) }), 200);
      const found = readResult(await ask("GET", "?metrics&id=docs"), "MetricsConfiguration");
      assert.equal(found.get("Id"), "docs");
      assert.equal(found.get("Filter/And/Prefix"), "docs/");
      assert.equal(found.get("Filter/And/Tag/Value"), "red");
      const list = readResult(await ask("GET", "?metrics"), "ListMetricsConfigurationsResult");
      const ids = list.children.flatMap((child) =>
        child.name === "MetricsConfiguration" ? [child.get("Id")] : [],
      );
      assert.deepEqual(ids, ["docs", "whole"]);
      const prefix = toBody("docs", "<Filter><Prefix>other/</Prefix></Filter>");
      assertEmpty(await ask("PUT", "?metrics&id=docs", { body: prefix }), 200);
      const again = (await ask("GET", "?metrics&id=docs")).document;
      assert.equal(again.get("Filter/Prefix"), "other/");
      assertEmpty(await ask("DELETE", "?metrics&id=docs"), 204);
      assertError(await ask("GET", "?metrics&id=docs"), 404, "NoSuchConfiguration");
      assertError(await ask("DELETE", "?metrics&id=docs"), 404, "NoSuchConfiguration");
    },
  ],
  [
    "are listed in pages of a hundred",
    async ({ ask }) => {
      const ids = Array.from({ length: 101 }, (_, index) => `m${String(index).padStart(3, "0")}`);
      for (const id of ids)
        assertEmpty(await ask("PUT", `?metrics&id=${id}`, { body: toBody(id) }), 200);
      const first = (await ask("GET", "?metrics")).document;
      assert.equal(first.get("IsTruncated"), "true");
      const token = first.get("NextContinuationToken")!;
      const rest = (await ask("GET", `?metrics&continuation-token=${token}`)).document;
      assert.equal(rest.get("IsTruncated"), "false");
      assert.equal(rest.get("ContinuationToken"), token);
      assert.equal(rest.get("MetricsConfiguration/Id"), "m100");
    },
  ],
  [
    "that are put at the same time are all there",
    async ({ ask }) => {
      const ids = ["a", "b", "c", "d", "e"];
      const answers = await Promise.all(
        ids.map((id) => ask("PUT", `?metrics&id=${id}`, { body: toBody(id) })),
      );
      for (const answer of answers) assertEmpty(answer, 200);
      for (const id of ids) assert.equal((await ask("GET", `?metrics&id=${id}`)).status, 200);
    },
  ],
  [
    "InvalidArgument for another id than that of the query, MalformedXML for what is no configuration",
    async ({ ask }) => {
      assertError(await ask("PUT", "?metrics&id=a", { body: toBody("b") }), 400, "InvalidArgument");
      assertError(await ask("PUT", "?metrics", { body: toBody("b") }), 400, "InvalidArgument");
      for (const body of [
        "x",
        "<MetricsConfiguration/>",
        toBody("a", "<Filter/>"),
        toBody("a", `<Filter><Prefix>x</Prefix>${TAG}</Filter>`),
        toBody("a", "<Filter><Size>1</Size></Filter>"),
        toBody("a b"),
        toBody("a".repeat(65)),
      ])
        assertError(await ask("PUT", "?metrics&id=a", { body }), 400, "MalformedXML");
    },
  ],
  [
    "NotImplemented for a filter by access point",
    async ({ ask }) => {
      const filter =
        "<Filter><AccessPointArn>arn:aws:s3:us-east-1:1:accesspoint/a</AccessPointArn></Filter>";
      const answer = await ask("PUT", "?metrics&id=a", { body: toBody("a", filter) });
      assertError(answer, 501, "NotImplemented");
    },
  ],
  [
    "AccessDenied without the permission",
    async ({ ask, createUser, bucket }) => {
      const as = await createUser({
        Effect: "Allow",
        Action: "s3:GetMetricsConfiguration",
        Resource: `arn:aws:s3:::${bucket}`,
      });
      assertError(
        await ask("PUT", "?metrics&id=a", { as, body: toBody("a") }),
        403,
        "AccessDenied",
      );
      assert.equal((await ask("GET", "?metrics", { as })).status, 200);
    },
  ],
  [
    "count requests by their kind, with series for each configuration",
    async ({ ask, must, put, stage, bucket }) => {
      const configurations = {
        whole: "",
        docs: "<Filter><Prefix>docs/</Prefix></Filter>",
        red: `<Filter>${TAG}</Filter>`,
      };
      for (const [id, filter] of Object.entries(configurations))
        await must("PUT", `?metrics&id=${id}`, { body: toBody(id, filter) });
      await put("docs/a", "hello", { "x-amz-tagging": "team=red" });
      await put("other", "hello");
      await must("GET", "/docs/a");
      await ask("GET", "/docs/none");
      await must("GET", "?list-type=2");
      const { text } = await stage.admin.send("GET", "/metrics");
      const read = (name: string, filter: string, rest: string) =>
        Number(
          new RegExp(
            `^platform_vault_bucket_requests_${name}\\{bucket="${bucket}",filter="${filter}",${rest}\\} (\\S+)`,
            "m",
          ).exec(text)?.[1] ?? "0",
        );
      assert.equal(read("total", "docs", 'kind="put"'), 1);
      assert.equal(read("total", "docs", 'kind="get"'), 2);
      assert.equal(read("total", "docs", 'kind="list"'), 0);
      assert.equal(read("total", "whole", 'kind="list"'), 1);
      assert.equal(read("total", "whole", 'kind="put"') >= 2, true);
      assert.equal(read("total", "red", 'kind="put"'), 1);
      assert.equal(read("total", "red", 'kind="get"'), 1);
      assert.equal(read("errors_total", "docs", 'class="4xx"'), 1);
      assert.equal(read("bytes_total", "docs", 'direction="uploaded"'), 5);
      assert.equal(read("bytes_total", "docs", 'direction="downloaded"') >= 5, true);
    },
  ],
);
